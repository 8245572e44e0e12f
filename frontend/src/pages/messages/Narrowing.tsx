import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { backlog } from "~/api/backlog";
import type { MessageLine } from "~/api/messages";
import type { useUrlState } from "~/lib/url-state";
import { type Filter, FilterBar } from "~/ui/filters";
import type { PARAMETERS } from "./parameters";

type Name = Exclude<keyof typeof PARAMETERS, "state" | "cursor">;

/** The filter; it suggests what waits, what the broker has, and what is on the page. */
export function Narrowing({
  state,
  shown,
}: {
  state: ReturnType<typeof useUrlState<typeof PARAMETERS>>;
  shown: readonly MessageLine[];
}) {
  const { data } = useQuery(backlog);
  const filters = useMemo((): readonly Filter<Name>[] => {
    const keys = data?.routing_keys.map(({ routing_key }) => routing_key) ?? [];
    const queues = data?.queues?.map(({ queue }) => queue) ?? [];
    return filtersFor(
      distinct([...keys, ...shown.map(({ routing_key }) => routing_key)]),
      distinct([...queues, ...shown.map(({ target_queue }) => target_queue)]),
      distinct(shown.map(({ ordering_key }) => ordering_key)),
    );
  }, [data, shown]);
  return <FilterBar label="Filter messages" filters={filters} state={state} also={{ cursor: undefined }} />;
}

function filtersFor(
  keys: readonly string[],
  queues: readonly string[],
  orderingKeys: readonly string[],
): readonly Filter<Name>[] {
  return [
    {
      name: "routing_key",
      label: "Routing key",
      kind: "text",
      suggestions: keys,
      hint: "The whole key, or its beginning with a star: order.*",
    },
    {
      name: "ordering_key",
      label: "Ordering key",
      kind: "text",
      suggestions: orderingKeys,
      hint: "The whole key; its messages are listed in their order.",
    },
    { name: "target_queue", label: "Target queue", kind: "text", suggestions: queues },
    { name: "message_id", label: "Message id", kind: "text", hint: "The whole id of the message." },
    { name: "tracking_id", label: "Chain", kind: "text", hint: "Any id that its messages carry." },
    { name: "created_after", label: "Written after", kind: "time" },
    { name: "created_before", label: "Written before", kind: "time" },
  ];
}

function distinct(values: readonly (string | null)[]): readonly string[] {
  return [...new Set(values.filter((value) => value !== null && value !== ""))] as string[];
}
