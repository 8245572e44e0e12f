// How much waits in the outbox and at the broker, since when, and how fast it comes and goes.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useInterval } from "./live";

export type Backlog = Schemas["BacklogResponse"];
export type WaitingState = keyof Schemas["StateCounts"];

const SPEEDS_CHANGE_EVERY = 5_000;

export const backlog = queryOptions({
  queryKey: ["backlog"] as const,
  queryFn: ({ signal }) => dataOf(client.GET("/backlog", { signal })),
  placeholderData: keepPreviousData,
});

export function useBacklog() {
  return useQuery({ ...backlog, refetchInterval: useInterval(SPEEDS_CHANGE_EVERY) });
}

/** How many lie in queues or are retried there; undefined where the broker does not say. */
export function inQueues({ queues }: Backlog): number | undefined {
  if (!queues) return undefined;
  return queues.reduce((sum, { queued, retrying }) => sum + (queued?.value ?? 0) + (retrying?.value ?? 0), 0);
}
