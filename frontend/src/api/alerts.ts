// What was sent to webhooks about what is wrong.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";
import { useInterval } from "./live";

export type Alert = Schemas["AlertResponse"];
export type AlertSettings = Schemas["AlertSettings"];
export type AlertStatus = "open" | "resolved";

const LIMIT = 50;
const READ_EVERY = 10_000;

/** There is no event for alerts: while the first page is on screen, it is read again now and then. */
export function useAlerts(status: AlertStatus | undefined, cursor: string | undefined) {
  const interval = useInterval(READ_EVERY);
  return useQuery({
    queryKey: ["alerts", status, cursor] as const,
    queryFn: ({ signal }) =>
      dataOf(
        client.GET("/alerts", {
          params: { query: withoutUndefined({ status, cursor, limit: LIMIT }) },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: cursor ? false : interval,
  });
}

/** Sends a test message to every webhook. */
export function useAlertTest() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => dataOf(client.POST("/alerts/test")),
    onSettled: () => queries.invalidateQueries({ queryKey: ["audit"] }),
  });
}
