// Who did what, or was not allowed to.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";
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
const READ_EVERY = 10_000;

/** No event tells of entries: while the first page is on screen, it is read again now and then. */
export function useAudit(filters: AuditFilters, cursor: string | undefined) {
  const interval = useInterval(READ_EVERY);
  return useQuery({
    queryKey: ["audit", filters, cursor] as const,
    queryFn: ({ signal }) => {
      const query = withoutUndefined({ ...filters, limit: LIMIT, total: true, cursor });
      return dataOf(client.GET("/audit", { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: cursor ? false : interval,
  });
}
