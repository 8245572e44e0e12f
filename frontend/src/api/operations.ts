// Bulk operations on dead letters, and the outcome of each item.

import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, type Schemas, unwrap, withoutUndefined } from "./client";
import type { Operation } from "./repairs";

export type { Operation };
export type Item = Schemas["OperationItemResponse"];
export type Outcome = Item["outcome"];

export interface Listed {
  items: readonly Operation[];
  next: string | null;
  previous: string | null;
}

/** Display order of outcomes: failures first. */
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

/** A page of operations, newest first. The first page starts with all active ones, regardless of age. */
export function operations(cursor: string | undefined) {
  return queryOptions({
    queryKey: ["operations", "list", cursor] as const,
    queryFn: async ({ signal }): Promise<Listed> => {
      const page = unwrap(
        client.GET("/operations", { params: { query: withoutUndefined({ limit: 50, cursor }) }, signal }),
      );
      if (cursor) return await page;
      const [listed, active] = await Promise.all([page, fetchActive(signal)]);
      const activeIds = new Set(active.map(({ id }) => id));
      return { ...listed, items: [...active, ...listed.items.filter(({ id }) => !activeIds.has(id))] };
    },
    placeholderData: keepPreviousData,
  });
}

export function operation(id: string) {
  return queryOptions({
    queryKey: ["operations", "one", id] as const,
    queryFn: ({ signal }) =>
      unwrap(client.GET("/operations/{id}", { params: { path: { id: asNumber(id) } }, signal })),
  });
}

export function itemsOf(id: string, outcome: Outcome | undefined, cursor: string | undefined) {
  return queryOptions({
    queryKey: ["operations", "items", id, outcome, cursor] as const,
    queryFn: ({ signal }) =>
      unwrap(
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

/** Whether it ended before all items were processed. */
export function endedEarly(state: Operation["state"]): boolean {
  return state === "stopped" || state === "cancelled";
}

export type OperationAction = "pause" | "resume" | "cancel";

/** Pauses, resumes or cancels an operation. Repeating an action has no further effect. */
export function useOperationAction(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (action: OperationAction) => {
      const path = { params: { path: { id: asNumber(id) } } };
      if (action === "pause") return unwrap(client.POST("/operations/{id}/pause", path));
      if (action === "resume") return unwrap(client.POST("/operations/{id}/resume", path));
      return unwrap(client.POST("/operations/{id}/cancel", path));
    },
    onSuccess(updated) {
      queries.setQueryData(operation(id).queryKey, updated);
      void queries.invalidateQueries({ queryKey: ["audit"] });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["operations"] }),
  });
}

async function fetchActive(signal: AbortSignal): Promise<readonly Operation[]> {
  const query = { active: true, limit: 50 };
  return (await unwrap(client.GET("/operations", { params: { query }, signal }))).items;
}

/** Satisfies the generated type of the path without converting: Number() would round ids beyond 2^53. */
function asNumber(id: string): number {
  return id as unknown as number;
}
