// Operations: changes of many dead letters that go on by themselves, and what came of each letter.

import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";
import type { Operation } from "./repairs";

export type { Operation };
export type Item = Schemas["OperationItemResponse"];
export type Outcome = Item["outcome"];

export interface Listed {
  items: readonly Operation[];
  next: string | null;
  previous: string | null;
}

/** The order in which outcomes are shown: what failed first. */
export const FAILURES_FIRST: readonly Outcome[] = [
  "failed_again",
  "refused",
  "not_found",
  "skipped",
  "pending",
  "requeued",
  "discarded",
  "restored",
  "purged",
];

/** A page of operations, the newest first; the first page has those that go on on top, however old they are. */
export function operations(cursor: string | undefined) {
  return queryOptions({
    queryKey: ["operations", "list", cursor] as const,
    queryFn: async ({ signal }): Promise<Listed> => {
      const page = dataOf(
        client.GET("/operations", { params: { query: withoutUndefined({ limit: 50, cursor }) }, signal }),
      );
      if (cursor) return await page;
      const [listed, goingOn] = await Promise.all([page, stillGoingOn(signal)]);
      const onTop = new Set(goingOn.map(({ id }) => id));
      return { ...listed, items: [...goingOn, ...listed.items.filter(({ id }) => !onTop.has(id))] };
    },
    placeholderData: keepPreviousData,
  });
}

export function operation(id: string) {
  return queryOptions({
    queryKey: ["operations", "one", id] as const,
    queryFn: ({ signal }) =>
      dataOf(client.GET("/operations/{id}", { params: { path: { id: asNumber(id) } }, signal })),
  });
}

export function itemsOf(id: string, outcome: Outcome | undefined, cursor: string | undefined) {
  return queryOptions({
    queryKey: ["operations", "items", id, outcome, cursor] as const,
    queryFn: ({ signal }) =>
      dataOf(
        client.GET("/operations/{id}/items", {
          params: {
            path: { id: asNumber(id) },
            query: withoutUndefined({ limit: 50, outcome, cursor }),
          },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
}

/** Whether it ended before it was through. */
export function wasEnded(state: Operation["state"]): boolean {
  return state === "stopped" || state === "cancelled";
}

export type OperationAction = "pause" | "resume" | "cancel";

/** Pauses, resumes or cancels an operation; asked for twice, it is the same. */
export function useOperationAction(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (action: OperationAction) => {
      const path = { params: { path: { id: asNumber(id) } } };
      if (action === "pause") return dataOf(client.POST("/operations/{id}/pause", path));
      if (action === "resume") return dataOf(client.POST("/operations/{id}/resume", path));
      return dataOf(client.POST("/operations/{id}/cancel", path));
    },
    onSuccess(now) {
      queries.setQueryData(operation(id).queryKey, now);
      void queries.invalidateQueries({ queryKey: ["audit"] });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["operations"] }),
  });
}

async function stillGoingOn(signal: AbortSignal): Promise<readonly Operation[]> {
  const query = { active: true, limit: 50 };
  return (await dataOf(client.GET("/operations", { params: { query }, signal }))).items;
}

/** The path of the API is typed as a number; ids beyond 2^53 stay what they are. */
function asNumber(id: string): number {
  return id as unknown as number;
}
