import { useMemo } from "react";
import type { Facets } from "~/api/dead-letters";
import { count } from "~/lib/format";
import type { useUrlState } from "~/lib/url-state";
import { type Filter, FilterBar } from "~/ui/filters";
import type { PARAMETERS } from "./parameters";

type Name = Exclude<keyof typeof PARAMETERS, "view" | "by" | "status" | "sort" | "cursor">;

const NOTHING: Facets = {
  as_of: "",
  relation: "eq",
  source: [],
  status: [],
  queue: [],
  exception_type: [],
  routing_key: [],
};

/** The filter; it suggests what there is, the most frequent first. */
export function Narrowing({
  state,
  facets = NOTHING,
}: {
  state: ReturnType<typeof useUrlState<typeof PARAMETERS>>;
  facets: Facets | undefined;
}) {
  const filters = useMemo(() => filtersFor(facets), [facets]);
  return (
    <FilterBar label="Filter dead letters" filters={filters} state={state} also={{ cursor: undefined }} />
  );
}

function filtersFor(facets: Facets): readonly Filter<Name>[] {
  const known = (field: "queue" | "routing_key" | "exception_type") =>
    facets[field]
      .filter(({ value }) => value !== "")
      .map((facet) => [facet.value, counted(facet.value, facet.count, facets)] as const);
  return [
    {
      name: "q",
      label: "Search",
      kind: "text",
      first: true,
      hint: 'Words of the error and of the masked body; "phrases", or, and -not work too.',
    },
    { name: "exception_type", label: "Error", kind: "text", suggestions: known("exception_type") },
    { name: "queue", label: "Queue", kind: "text", suggestions: known("queue") },
    { name: "routing_key", label: "Routing key", kind: "text", suggestions: known("routing_key") },
    {
      name: "source",
      label: "Given up by",
      kind: "choice",
      options: SOURCES.map(([source, text]) => {
        const found = facets.source.find(({ value }) => value === source)?.count ?? 0;
        return [source, text, counted(text, found, facets)] as const;
      }),
    },
    { name: "failed_after", label: "Failed after", kind: "time" },
    { name: "failed_before", label: "Failed before", kind: "time" },
    { name: "min_failures", label: "Failures, at least", kind: "whole", least: 1, most: 2 ** 31 - 1 },
    { name: "group_id", label: "Group", kind: "text", hint: "The id of a group of errors." },
    { name: "tracking_id", label: "Chain", kind: "text", hint: "Any id of a chain." },
    { name: "message_id", label: "Message id", kind: "text", hint: "The whole id of the message." },
  ];
}

const SOURCES = [
  ["worker", "a worker"],
  ["relay", "the relay"],
  ["broker", "the broker"],
] as const;

/** A suggestion with how many there are of it. */
function counted(text: string, value: number, { as_of, relation }: Facets): string {
  return as_of === "" ? text : `${text} · ${count({ value, relation: value > 0 ? relation : "eq" })}`;
}
