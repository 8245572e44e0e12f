import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { backlog } from "~/api/backlog";
import { type Facets, useGroupTitle } from "~/api/dead-letters";
import { count } from "~/lib/format";
import type { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/dead-letters";
import { type Filter, FilterBar } from "~/ui/filters";
import type { PARAMETERS } from "./parameters";

type Name = Exclude<keyof typeof PARAMETERS, "view" | "by" | "status" | "sort" | "cursor">;

const NO_FACETS: Facets = {
  as_of: "",
  relation: "eq",
  source: [],
  status: [],
  queue: [],
  exception_type: [],
  routing_key: [],
};

/** The filter bar. Suggests existing values, most frequent first. */
export function FilterFields({
  state,
  facets = NO_FACETS,
}: {
  state: ReturnType<typeof useUrlState<typeof PARAMETERS>>;
  facets: Facets | undefined;
}) {
  const [{ group_id: group }] = state;
  const title = useGroupTitle(group);
  const { data } = useQuery(backlog);
  const filters = useMemo(
    () => filtersFor(facets, title, data?.destinations.map(({ destination }) => destination) ?? []),
    [facets, title, data],
  );
  return (
    <FilterBar label={texts.filter} filters={filters} state={state} extraChanges={{ cursor: undefined }} />
  );
}

function filtersFor(
  facets: Facets,
  groupTitle: string | undefined,
  destinations: readonly string[],
): readonly Filter<Name>[] {
  const suggestionsFor = (field: "queue" | "routing_key" | "exception_type") =>
    facets[field]
      .filter(({ value }) => value !== "")
      .map((facet) => [facet.value, withCount(facet.value, facet.count, facets)] as const);
  return [
    {
      name: "q",
      label: texts.search,
      kind: "text",
      first: true,
      hint: texts.searchHint,
    },
    {
      name: "exception_type",
      label: texts.error,
      kind: "text",
      suggestions: suggestionsFor("exception_type"),
    },
    { name: "queue", label: texts.queue, kind: "text", suggestions: suggestionsFor("queue") },
    {
      name: "routing_key",
      label: texts.routingKey,
      kind: "text",
      suggestions: suggestionsFor("routing_key"),
    },
    {
      name: "source",
      label: texts.source,
      kind: "choice",
      options: SOURCES.map(([source, text]) => {
        const found = facets.source.find(({ value }) => value === source)?.count ?? 0;
        return [source, text, withCount(text, found, facets)] as const;
      }),
    },
    ...(destinations.length > 0
      ? [
          {
            name: "destination" as const,
            label: texts.destination,
            kind: "text" as const,
            suggestions: destinations,
          },
        ]
      : []),
    { name: "failed_after", label: texts.failedAfter, kind: "time" },
    { name: "failed_before", label: texts.failedBefore, kind: "time" },
    { name: "min_failures", label: texts.minFailures, kind: "integer", min: 1, max: 2 ** 31 - 1 },
    { name: "group_id", label: texts.group, kind: "text", hint: texts.groupHint, shown: groupTitle },
    { name: "tracking_id", label: texts.chain, kind: "text", hint: texts.chainHint },
    { name: "message_id", label: texts.messageId, kind: "text", hint: texts.messageIdHint },
  ];
}

const SOURCES = [
  ["worker", texts.aWorker],
  ["relay", texts.theRelay],
  ["broker", texts.theBroker],
] as const;

/** Adds the number of matches to a suggestion. */
function withCount(text: string, value: number, { as_of, relation }: Facets): string {
  return as_of === "" ? text : `${text} · ${count({ value, relation: value > 0 ? relation : "eq" })}`;
}
