// Queues: who consumes each, what waits in it, and how fast it is handled.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useInterval } from "./live";

export type QueueList = Schemas["QueueList"];
export type Queue = Schemas["QueueSummary"];
export type QueueDetail = Schemas["QueueDetail"];
export type HandlingTimes = Schemas["HandlingTimes"];

const READ_EVERY = 5_000;

export function useQueues() {
  return useQuery({
    queryKey: ["queues", "all"] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/queues", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(READ_EVERY),
  });
}

export function useQueue(name: string) {
  return useQuery({
    queryKey: ["queues", "one", name] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/queues/{name}", { params: { path: { name } }, signal })),
    placeholderData: (before) => (before?.name === name ? before : undefined),
    refetchInterval: useInterval(READ_EVERY),
  });
}
