import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { backlog } from "~/api/backlog";
import type { MessageLine } from "~/api/messages";
import type { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/messages";
import { type Filter, FilterBar } from "~/ui/filters";
import type { PARAMETERS } from "./parameters";

type Name = Exclude<keyof typeof PARAMETERS, "state" | "cursor">;

/** The filter bar. Suggests values from the backlog, the broker and the current page. */
export function FilterFields({
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
      data?.destinations.map(({ destination }) => destination) ?? [],
    );
  }, [data, shown]);
  return (
    <FilterBar label={texts.filter} filters={filters} state={state} extraChanges={{ cursor: undefined }} />
  );
}

function filtersFor(
  keys: readonly string[],
  queues: readonly string[],
  orderingKeys: readonly string[],
  destinations: readonly string[],
): readonly Filter<Name>[] {
  return [
    {
      name: "routing_key",
      label: texts.routingKey,
      kind: "text",
      suggestions: keys,
      hint: texts.routingKeyHint,
    },
    {
      name: "ordering_key",
      label: texts.orderingKey,
      kind: "text",
      suggestions: orderingKeys,
      hint: texts.orderingKeyHint,
    },
    { name: "target_queue", label: texts.targetQueue, kind: "text", suggestions: queues },
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
    { name: "message_id", label: texts.messageId, kind: "text", hint: texts.messageIdHint },
    { name: "tracking_id", label: texts.chain, kind: "text", hint: texts.chainHint },
    { name: "created_after", label: texts.publishedAfter, kind: "time" },
    { name: "created_before", label: texts.publishedBefore, kind: "time" },
  ];
}

function distinct(values: readonly (string | null)[]): readonly string[] {
  return [...new Set(values.filter((value) => value !== null && value !== ""))] as string[];
}
