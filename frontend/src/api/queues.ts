// Queues: who consumes each, what waits in it, and how fast it is handled.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useInterval } from "./live";

export type QueueList = Schemas["QueueList"];
export type Queue = Schemas["QueueSummary"];
export type QueueDetail = Schemas["QueueDetail"];
export type HandlingTimes = Schemas["HandlingTimes"];

const READ_EVERY = 5_000;

export type AttemptOrder = "latest" | "slowest";
const ATTEMPTS_OF = 86_400_000;
const ATTEMPTS_SHOWN = 20;

/** The latest or the slowest attempts of a queue's handler in the last day. */
export function useAttempts(queue: string, order: AttemptOrder) {
  return useQuery({
    queryKey: ["queues", "attempts", queue, order] as const,
    queryFn: ({ signal }) => {
      const after = new Date(Date.now() - ATTEMPTS_OF).toISOString();
      const query = { queue, order, after, limit: ATTEMPTS_SHOWN };
      return dataOf(client.GET("/attempts", { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(READ_EVERY),
  });
}

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
