// Data of the overview: counts and top items of other pages' resources.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useFallbackInterval, useInterval } from "./live";

export type FailureGroup = Schemas["DeadLetterGroup"];
export type Component = Schemas["ComponentResponse"];
/** Components with a recent heartbeat, and active pauses. */
export type LiveComponents = Schemas["Components"];
export type Pause = Schemas["PauseResponse"];
/** The server's health verdict, the same that `doctor` and the metrics report. */
export type Verdict = Schemas["VerdictResponse"];
export type Finding = Schemas["VerdictFinding"];
export type FindingCode = Finding["code"];

const TOP_GROUPS = 5;
const NEW_WITHIN = 3_600_000;
const MINUTE = 60_000;

/** Number of open dead letters. */
const openDeadLetters = queryOptions({
  queryKey: ["dead-letters", "open count"] as const,
  queryFn: ({ signal }) => countDeadLetters({}, signal),
  placeholderData: keepPreviousData,
});

/** Number of open dead letters of the last hour, with its start time for a link to the same list. */
const newDeadLetters = queryOptions({
  queryKey: ["dead-letters", "new count"] as const,
  queryFn: async ({ signal }) => {
    const since = new Date(Math.floor((Date.now() - NEW_WITHIN) / MINUTE) * MINUTE).toISOString();
    return { since, total: await countDeadLetters({ failed_after: since }, signal) };
  },
  placeholderData: keepPreviousData,
});

export function useOpenDeadLetters() {
  return useQuery({ ...openDeadLetters, refetchInterval: useFallbackInterval() });
}

export function useNewDeadLetters() {
  return useQuery({ ...newDeadLetters, refetchInterval: useInterval(MINUTE) });
}

/** The health verdict with its findings. */
export function useVerdict() {
  return useQuery({
    queryKey: ["backlog", "verdict"] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/health/verdict", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(5_000),
  });
}

/** The failure groups with the most open dead letters. */
export function useTopGroups() {
  return useQuery({
    queryKey: ["groups", "top"] as const,
    queryFn: ({ signal }) =>
      unwrap(client.GET("/dlq/groups", { params: { query: { limit: TOP_GROUPS } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useFallbackInterval(),
  });
}

/** Operations that have not ended. */
export function useRunningOperations() {
  return useQuery({
    queryKey: ["operations", "active"] as const,
    queryFn: ({ signal }) =>
      unwrap(client.GET("/operations", { params: { query: { active: true, limit: 5 } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useFallbackInterval(),
  });
}

/** Loads live components and active pauses. */
export function useLiveComponents() {
  return useQuery({
    queryKey: ["components", "living"] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/components", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(5_000),
  });
}

/** Latest time at which any relay sent a message. */
export function lastSentAt(components: readonly Component[]): string | undefined {
  return components
    .map(({ activity }) => activity.last_sent_at)
    .filter((at) => typeof at === "string")
    .sort()
    .at(-1);
}

async function countDeadLetters(filter: { failed_after?: string }, signal: AbortSignal) {
  const query = { ...filter, limit: 1, total: true };
  const { total } = await unwrap(client.GET("/dlq", { params: { query }, signal }));
  return total ?? { value: 0, relation: "eq" };
}
