// Queues: consumers, depth and throughput.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useInterval } from "./live";

export type QueueList = Schemas["QueueList"];
export type Queue = Schemas["QueueSummary"];
export type QueueDetail = Schemas["QueueDetail"];
export type HandlingTimes = Schemas["HandlingTimes"];

const REFETCH_INTERVAL = 5_000;

export type AttemptOrder = "latest" | "slowest";
const ATTEMPTS_PERIOD = 86_400_000;
const ATTEMPTS_LIMIT = 20;

/** Latest or slowest attempts of a queue's handler within the last day. */
export function useAttempts(queue: string, order: AttemptOrder) {
  return useQuery({
    queryKey: ["queues", "attempts", queue, order] as const,
    queryFn: ({ signal }) => {
      const after = new Date(Date.now() - ATTEMPTS_PERIOD).toISOString();
      const query = { queue, order, after, limit: ATTEMPTS_LIMIT };
      return unwrap(client.GET("/attempts", { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(REFETCH_INTERVAL),
  });
}

export function useQueues() {
  return useQuery({
    queryKey: ["queues", "all"] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/queues", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(REFETCH_INTERVAL),
  });
}

export function useQueue(name: string) {
  return useQuery({
    queryKey: ["queues", "one", name] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/queues/{name}", { params: { path: { name } }, signal })),
    placeholderData: (previous) => (previous?.name === name ? previous : undefined),
    refetchInterval: useInterval(REFETCH_INTERVAL),
  });
}
