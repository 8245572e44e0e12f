// Backlog of the outbox and the broker: counts, oldest ages, and rates.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useInterval } from "./live";

export type Backlog = Schemas["BacklogResponse"];
export type WaitingState = keyof Schemas["StateCounts"];

const REFETCH_INTERVAL = 5_000;

export const backlog = queryOptions({
  queryKey: ["backlog"] as const,
  queryFn: ({ signal }) => unwrap(client.GET("/backlog", { signal })),
  placeholderData: keepPreviousData,
});

export function useBacklog() {
  return useQuery({ ...backlog, refetchInterval: useInterval(REFETCH_INTERVAL) });
}

/** Messages queued or retrying in all queues; undefined if the broker does not report its queues. */
export function countInQueues({ queues }: Backlog): number | undefined {
  if (!queues) return undefined;
  return queues.reduce((sum, { queued, retrying }) => sum + (queued?.value ?? 0) + (retrying?.value ?? 0), 0);
}
