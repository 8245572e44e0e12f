// Deliveries in database queues, and changes of waiting messages and deliveries.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, type Schemas, unwrap, useIdempotencyHeaders, withoutUndefined } from "./client";
import { useInterval } from "./live";
import type { MessageFilters } from "./messages";
import type { Resource } from "./queries";

export type DeliveryState = Schemas["DeliverySummary"]["state"];
export type Delivery = Schemas["DeliverySummary"];
export type DeliveryDetail = Schemas["DeliveryDetail"];
/** An action; for moves, the destination. */
export type WaitingAction =
  | Exclude<Schemas["ChangeResponse"]["action"], "move">
  | Schemas["MoveRequest"]["to"];
export type ChangeResponse = Schemas["ChangeResponse"];
export type ChangePlan = Schemas["ChangePlan"];
export type WaitingState = Schemas["WaitingFilters"]["state"];

export const WAITING = ["pending", "scheduled", "held", "stalled", "blocked", "retrying"] as const;
export const DELIVERY_STATES = ["queued", "in_flight", "retrying", "postponed"] as const;

/** Rows by id, or all rows that match a filter. */
export type WaitingTarget =
  | { ids: readonly string[] }
  | { filter: MessageFilters & { state: WaitingState } }
  | { filter: { queue: string; state?: DeliveryState | undefined } };

export interface Change {
  reason?: string | null;
  confirm_token?: string;
  due_at?: string;
  priority?: number;
}

const PAGE_SIZE = 20;
const REFETCH_INTERVAL = 5_000;

export function useDeliveries(queue: string, state: DeliveryState | undefined, cursor: string | undefined) {
  const query = withoutUndefined({ queue, state, cursor, limit: PAGE_SIZE });
  return useQuery({
    queryKey: ["deliveries", "list", queue, state, cursor] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/deliveries", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(REFETCH_INTERVAL),
  });
}

export function useDelivery(id: string) {
  const interval = useInterval(REFETCH_INTERVAL);
  return useQuery({
    queryKey: ["deliveries", "one", id] as const,
    queryFn: ({ signal }) =>
      unwrap(client.GET("/deliveries/{id}", { params: { path: { id: Number(id) } }, signal })),
    // Its dialog suspends updates. A delivery that a worker has or takes next is read again nevertheless: otherwise it would
    // never seem to end.
    refetchInterval: ({ state: { data, status } }) =>
      status === "success" && (data?.state === "in_flight" || data?.state === "queued")
        ? REFETCH_INTERVAL
        : interval,
  });
}

/** Dry run of a change by filter, with its confirmation token. Changes by id need none. */
export function useChangeDryRun(action: WaitingAction, target: WaitingTarget) {
  return useQuery({
    queryKey: ["deliveries", "plan", action, JSON.stringify(target)] as const,
    queryFn: async () => (await send(action, target, { dry_run: true })) as ChangePlan,
    enabled: "filter" in target,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

export function useChange(
  action: WaitingAction,
  target: WaitingTarget,
  onChanged: (result: ChangeResponse) => void,
) {
  const queries = useQueryClient();
  const headers = useIdempotencyHeaders();
  return useMutation({
    mutationFn: async (change: Change) =>
      (await send(action, target, change, headers(change))) as ChangeResponse,
    onSuccess(result) {
      for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
      onChanged(result);
    },
  });
}

const CHANGED: readonly Resource[] = [
  "messages",
  "deliveries",
  "queues",
  "backlog",
  "dead-letters",
  "groups",
];

function send(action: WaitingAction, target: WaitingTarget, change: object, headers = {}) {
  const body = { selector: target, ...change } as never;
  switch (action) {
    case "cancel":
      return unwrap(client.POST("/messages/cancel", { body, headers }));
    case "send_now":
      return unwrap(client.POST("/messages/send-now", { body, headers }));
    case "reschedule":
      return unwrap(client.POST("/messages/reschedule", { body, headers }));
    case "retry":
      return unwrap(client.POST("/deliveries/retry", { body, headers }));
    case "front":
    case "back":
      return unwrap(
        client.POST("/deliveries/move", { body: { ...(body as object), to: action } as never, headers }),
      );
    case "dead_letter":
      return unwrap(client.POST("/deliveries/dead-letter", { body, headers }));
  }
}

export interface Publication {
  routing_key: string;
  /** JSON text, published as typed, because parsing it would round large numbers. */
  body: string;
  destinations: string[];
  reason: string | null;
  force: boolean;
}

export function usePublish(onPublished: (result: Schemas["PublishedMessage"]) => void) {
  const queries = useQueryClient();
  const headers = useIdempotencyHeaders();
  return useMutation({
    mutationFn: (publication: Publication) =>
      unwrap(
        client.POST("/messages", {
          body: { ...publication, encoding: "text", content_type: "application/json" },
          headers: headers(publication),
        }),
      ),
    onSuccess(result) {
      for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
      onPublished(result);
    },
  });
}

export type MessageEdit = Omit<Schemas["MessageEditRequest"], "encoding" | "force"> & {
  encoding?: "json" | "text" | "base64";
  force?: boolean;
};

export function useMessageEdit(id: string, onEdited: () => void) {
  const queries = useQueryClient();
  const headers = useIdempotencyHeaders();
  return useMutation({
    mutationFn: (edit: MessageEdit) =>
      unwrap(
        client.PATCH("/messages/{id}", {
          params: { path: { id: Number(id) } },
          body: edit as never,
          headers: headers(edit),
        }),
      ),
    onSuccess() {
      void queries.invalidateQueries({ queryKey: ["messages"] });
      onEdited();
    },
  });
}
