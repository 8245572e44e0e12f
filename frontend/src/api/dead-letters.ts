// The list of dead letters, their groups, and what is noted about groups.

import { keepPreviousData, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";

export type Line = Schemas["DeadLetterSummary"];
export type Facets = Schemas["Facets"];
export type Group = Schemas["DeadLetterGroup"];
export type GroupedBy = Group["by"];
export type GroupStatus = Schemas["GroupStatus"];
export type Status = "open" | "requeued" | "discarded" | "any";
export type Filters = Schemas["DeadLetterFilters"];

export interface Page {
  /** What was asked for, so that an answer that is still shown for the next question is known by it. */
  scope: string;
  items: readonly Line[];
  total: { value: number; relation: string } | undefined;
  facets: Facets | undefined;
  next: string | null;
  previous: string | null;
  degraded: readonly string[];
  unarchived: Schemas["Unarchived"] | null;
}

export const LIMIT = 50;

/** Names what is listed: filter, order and page. */
export function scopeOf(filters: Filters, sort: "newest" | "oldest", cursor: string | undefined): string {
  return JSON.stringify([filters, sort, cursor]);
}

/** One page, with how many there are in all and of what kinds. */
export function deadLetters(filters: Filters, sort: "newest" | "oldest", cursor: string | undefined) {
  return queryOptions({
    queryKey: ["dead-letters", "list", filters, sort, cursor] as const,
    async queryFn({ signal }): Promise<Page> {
      const query = { ...filters, sort, limit: LIMIT, total: true, facets: true, ...(cursor && { cursor }) };
      const { total, facets, ...page } = await dataOf(client.GET("/dlq", { params: { query }, signal }));
      return {
        ...page,
        scope: scopeOf(filters, sort, cursor),
        total: total ?? undefined,
        facets: facets ?? undefined,
      };
    },
    placeholderData: keepPreviousData,
  });
}

/** What failed alike, the largest group first. */
export function deadLetterGroups(filters: Filters, by: GroupedBy, statuses?: readonly GroupStatus[]) {
  return queryOptions({
    queryKey: ["groups", filters, by, statuses] as const,
    async queryFn({ signal }) {
      const query = { ...filters, by, limit: LIMIT, ...(statuses && { group_status: [...statuses] }) };
      const groups = await dataOf(client.GET("/dlq/groups", { params: { query }, signal }));
      return { ...groups, scope: JSON.stringify([filters, by, statuses]) };
    },
    placeholderData: keepPreviousData,
  });
}

/** A group of failures with a common fingerprint, whatever became of its dead letters. */
export function deadLetterGroup(id: string) {
  return queryOptions({
    queryKey: ["groups", id] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/dlq/groups/{id}", { params: { path: { id } }, signal })),
  });
}

/** What a group is called; undefined: none is asked for, or it is not known. */
export function useGroupTitle(id: string | undefined): string | undefined {
  return useQuery({ ...deadLetterGroup(id ?? ""), enabled: id !== undefined, retry: false }).data?.title;
}

/** Marks a group as fixed or muted, or takes its mark away. */
export function useMarkGroup(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key, ...mark }: Omit<Schemas["GroupMarkRequest"], "id"> & { key: string }) =>
      dataOf(
        client.PUT("/dlq/groups/status", { body: { id, ...mark }, headers: { "Idempotency-Key": key } }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}

/** Lets a group be requeued by itself, at most so many an hour; null: no more. */
export function useGroupPolicy(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ per_hour, key }: { per_hour: number | null; key: string }) =>
      dataOf(
        client.PUT("/dlq/groups/policy", { body: { id, per_hour }, headers: { "Idempotency-Key": key } }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}

/** Notes something about a group; null takes the note away. */
export function useNoteGroup({ by, id }: Pick<Group, "by" | "id">) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ note, key }: { note: string | null; key: string }) =>
      dataOf(client.PUT("/dlq/groups/note", { body: { by, id, note }, headers: { "Idempotency-Key": key } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}
