// What the overview shows of other pages' resources: counts, and the first few.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useFallbackInterval, useInterval } from "./live";

export type FailureGroup = Schemas["DeadLetterGroup"];
export type Component = Schemas["ComponentResponse"];
/** Components with a recent heartbeat, and what is paused. */
export type Living = Schemas["Components"];
export type Pause = Schemas["PauseResponse"];
/** Whether all is well, as the server judges: the doctor and the metrics tell the same. */
export type Verdict = Schemas["VerdictResponse"];
export type Finding = Schemas["VerdictFinding"];
export type FindingCode = Finding["code"];

const TOP_GROUPS = 5;
const NEW_WITHIN = 3_600_000;
const MINUTE = 60_000;

/** Open dead letters. */
const openLetters = queryOptions({
  queryKey: ["dead-letters", "how many"] as const,
  queryFn: ({ signal }) => countLetters({}, signal),
  placeholderData: keepPreviousData,
});

/** Those of them that died in the last hour, and since when that is, for a list of the same. */
const newLetters = queryOptions({
  queryKey: ["dead-letters", "how many are new"] as const,
  queryFn: async ({ signal }) => {
    const since = new Date(Math.floor((Date.now() - NEW_WITHIN) / MINUTE) * MINUTE).toISOString();
    return { since, total: await countLetters({ failed_after: since }, signal) };
  },
  placeholderData: keepPreviousData,
});

export function useOpenLetters() {
  return useQuery({ ...openLetters, refetchInterval: useFallbackInterval() });
}

export function useNewLetters() {
  return useQuery({ ...newLetters, refetchInterval: useInterval(MINUTE) });
}

/** Whether all is well, and if not, what is wrong. */
export function useVerdict() {
  return useQuery({
    queryKey: ["backlog", "verdict"] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/health/verdict", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(5_000),
  });
}

/** The failure groups with the most open dead letters. */
export function useTopGroups() {
  return useQuery({
    queryKey: ["groups", "top"] as const,
    queryFn: ({ signal }) =>
      dataOf(client.GET("/dlq/groups", { params: { query: { limit: TOP_GROUPS } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useFallbackInterval(),
  });
}

/** Operations that have not ended. */
export function useRunningOperations() {
  return useQuery({
    queryKey: ["operations", "active"] as const,
    queryFn: ({ signal }) =>
      dataOf(client.GET("/operations", { params: { query: { active: true, limit: 5 } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useFallbackInterval(),
  });
}

/** Who lives, and what is paused. */
export function useLiving() {
  return useQuery({
    queryKey: ["components", "living"] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/components", { signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(5_000),
  });
}

/** When a relay last said that it sent something: the latest of all. */
export function lastSentAt(components: readonly Component[]): string | undefined {
  return components
    .map(({ activity }) => activity.last_sent_at)
    .filter((at) => typeof at === "string")
    .sort()
    .at(-1);
}

async function countLetters(filter: { failed_after?: string }, signal: AbortSignal) {
  const query = { ...filter, limit: 1, total: true };
  const { total } = await dataOf(client.GET("/dlq", { params: { query }, signal }));
  return total ?? { value: 0, relation: "eq" };
}
