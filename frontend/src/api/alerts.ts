// Alerts sent to webhooks.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, type Schemas, unwrap, withoutUndefined } from "./client";
import { useInterval } from "./live";

export type Alert = Schemas["AlertResponse"];
export type AlertSettings = Schemas["AlertSettings"];
export type AlertStatus = "open" | "resolved";

const LIMIT = 50;
const REFETCH_INTERVAL = 10_000;

/** A page of alerts. The event stream has no event for them, so the first page is polled. */
export function useAlerts(status: AlertStatus | undefined, cursor: string | undefined) {
  const interval = useInterval(REFETCH_INTERVAL);
  return useQuery({
    queryKey: ["alerts", status, cursor] as const,
    queryFn: ({ signal }) =>
      unwrap(
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
export function useSendTestAlert() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(client.POST("/alerts/test")),
    onSettled: () => queries.invalidateQueries({ queryKey: ["audit"] }),
  });
}
