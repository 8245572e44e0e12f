// The audit log: who did what, and which actions were denied.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap, withoutUndefined } from "./client";
import { useInterval } from "./live";

export type Entry = Schemas["AuditEntry"];

export interface AuditFilters {
  actor: string | undefined;
  action: string | undefined;
  outcome: Entry["outcome"] | undefined;
  target: string | undefined;
  created_after: string | undefined;
  created_before: string | undefined;
}

const LIMIT = 50;
const REFETCH_INTERVAL = 10_000;

/** A page of audit entries. The event stream has no event for them, so the first page is polled. */
export function useAudit(filters: AuditFilters, cursor: string | undefined) {
  const interval = useInterval(REFETCH_INTERVAL);
  return useQuery({
    queryKey: ["audit", filters, cursor] as const,
    queryFn: ({ signal }) => {
      const query = withoutUndefined({ ...filters, limit: LIMIT, total: true, cursor });
      return unwrap(client.GET("/audit", { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: cursor ? false : interval,
  });
}
