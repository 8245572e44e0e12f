// The list of dead letters, and their groups with notes, marks and policies.

import { keepPreviousData, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";

export type Line = Schemas["DeadLetterSummary"];
export type Facets = Schemas["Facets"];
export type Group = Schemas["DeadLetterGroup"];
export type GroupedBy = Group["by"];
export type GroupStatus = Schemas["GroupStatus"];
export type Status = "open" | "requeued" | "discarded" | "any";
export type Filters = Schemas["DeadLetterFilters"];

export interface Page {
  /** Identifies the request, to recognize a previous page that is still shown as a placeholder. */
  scope: string;
  filters: Filters;
  items: readonly Line[];
  total: { value: number; relation: string } | undefined;
  facets: Facets | undefined;
  next: string | null;
  previous: string | null;
  degraded: readonly string[];
  unarchived: Schemas["Unarchived"] | null;
}

export const LIMIT = 50;

/** Identifies a list by filter, order and page. */
export function scopeOf(filters: Filters, sort: "newest" | "oldest", cursor: string | undefined): string {
  return JSON.stringify([filters, sort, cursor]);
}

/** One page, with the total and facets. */
export function deadLetters(filters: Filters, sort: "newest" | "oldest", cursor: string | undefined) {
  return queryOptions({
    queryKey: ["dead-letters", "list", filters, sort, cursor] as const,
    async queryFn({ signal }): Promise<Page> {
      const query = { ...filters, sort, limit: LIMIT, total: true, facets: true, ...(cursor && { cursor }) };
      const { total, facets, ...page } = await unwrap(client.GET("/dlq", { params: { query }, signal }));
      return {
        ...page,
        scope: scopeOf(filters, sort, cursor),
        filters,
        total: total ?? undefined,
        facets: facets ?? undefined,
      };
    },
    placeholderData: keepPreviousData,
  });
}

/** Groups of similar failures, the largest first. */
export function deadLetterGroups(filters: Filters, by: GroupedBy, statuses?: readonly GroupStatus[]) {
  return queryOptions({
    queryKey: ["groups", filters, by, statuses] as const,
    async queryFn({ signal }) {
      const query = { ...filters, by, limit: LIMIT, ...(statuses && { group_status: [...statuses] }) };
      const groups = await unwrap(client.GET("/dlq/groups", { params: { query }, signal }));
      return { ...groups, scope: JSON.stringify([filters, by, statuses]) };
    },
    placeholderData: keepPreviousData,
  });
}

/** A group of failures with the same fingerprint, in any state. */
export function deadLetterGroup(id: string) {
  return queryOptions({
    queryKey: ["groups", id] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/dlq/groups/{id}", { params: { path: { id } }, signal })),
  });
}

/** Title of a group; undefined without an id, or if the group is unknown. */
export function useGroupTitle(id: string | undefined): string | undefined {
  return useQuery({ ...deadLetterGroup(id ?? ""), enabled: id !== undefined, retry: false }).data?.title;
}

/** Marks a group as fixed or muted, or removes the mark. */
export function useMarkGroup(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key, ...mark }: Omit<Schemas["GroupMarkRequest"], "id"> & { key: string }) =>
      unwrap(
        client.PUT("/dlq/groups/status", { body: { id, ...mark }, headers: { "Idempotency-Key": key } }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}

/** Sets how many dead letters of a group are requeued automatically per hour; null turns it off. */
export function useGroupPolicy(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ per_hour, key }: { per_hour: number | null; key: string }) =>
      unwrap(
        client.PUT("/dlq/groups/policy", { body: { id, per_hour }, headers: { "Idempotency-Key": key } }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}

/** Sets a group's note; null removes it. `version` is that of the note that the user has seen, 0 for none. */
export function useNoteGroup({ by, id }: Pick<Group, "by" | "id">) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key, ...change }: { note: string | null; version: number; key: string }) =>
      unwrap(
        client.PUT("/dlq/groups/note", {
          body: { by, id, ...change },
          headers: { "Idempotency-Key": key },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["groups"] }),
  });
}
