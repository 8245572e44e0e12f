// Messages that wait: deliveries in queues of the database, and changes of these and of messages in the outbox.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { randomKey } from "~/lib/random";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";
import { useInterval } from "./live";
import type { MessageFilters } from "./messages";
import type { Resource } from "./queries";

export type DeliveryState = Schemas["DeliverySummary"]["state"];
export type Delivery = Schemas["DeliverySummary"];
export type DeliveryDetail = Schemas["DeliveryDetail"];
/** What is done; of moves, where to. */
export type WaitingAction =
  | Exclude<Schemas["ChangeResponse"]["action"], "move">
  | Schemas["MoveRequest"]["to"];
export type ChangeResponse = Schemas["ChangeResponse"];
export type ChangePlan = Schemas["ChangePlan"];
export type WaitingState = Schemas["WaitingFilters"]["state"];

export const WAITING = ["pending", "scheduled", "held", "stalled", "blocked", "retrying"] as const;
export const DELIVERY_STATES = ["queued", "in_flight", "retrying", "postponed"] as const;

/** Some rows by their ids, or all that fit a filter. */
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

const LIMIT = 20;
const READ_EVERY = 5_000;

export function useDeliveries(queue: string, state: DeliveryState | undefined, cursor: string | undefined) {
  const query = withoutUndefined({ queue, state, cursor, limit: LIMIT });
  return useQuery({
    queryKey: ["deliveries", "list", queue, state, cursor] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/deliveries", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(READ_EVERY),
  });
}

export function useDelivery(id: string) {
  return useQuery({
    queryKey: ["deliveries", "one", id] as const,
    queryFn: ({ signal }) =>
      dataOf(client.GET("/deliveries/{id}", { params: { path: { id: Number(id) } }, signal })),
    refetchInterval: useInterval(READ_EVERY),
  });
}

/** What a change of all that fit a filter would do, and the token for it. Of ids nothing is asked. */
export function usePlan(action: WaitingAction, target: WaitingTarget) {
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
  onChanged: (came: ChangeResponse) => void,
) {
  const queries = useQueryClient();
  const key = useRef(randomKey());
  return useMutation({
    mutationFn: async (change: Change) => (await send(action, target, change, key.current)) as ChangeResponse,
    onSuccess(came) {
      for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
      onChanged(came);
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

function send(action: WaitingAction, target: WaitingTarget, change: object, key?: string) {
  const headers = key === undefined ? {} : { "Idempotency-Key": key };
  const body = { selector: target, ...change } as never;
  switch (action) {
    case "cancel":
      return dataOf(client.POST("/messages/cancel", { body, headers }));
    case "send_now":
      return dataOf(client.POST("/messages/send-now", { body, headers }));
    case "reschedule":
      return dataOf(client.POST("/messages/reschedule", { body, headers }));
    case "retry":
      return dataOf(client.POST("/deliveries/retry", { body, headers }));
    case "front":
    case "back":
      return dataOf(
        client.POST("/deliveries/move", { body: { ...(body as object), to: action } as never, headers }),
      );
    case "dead_letter":
      return dataOf(client.POST("/deliveries/dead-letter", { body, headers }));
  }
}

export interface Publication {
  routing_key: string;
  /** JSON as it was typed, so that no number loses digits. */
  body: string;
  reason: string | null;
  force: boolean;
}

export function usePublish(onPublished: (came: Schemas["PublishedMessage"]) => void) {
  const queries = useQueryClient();
  const key = useRef(randomKey());
  return useMutation({
    mutationFn: ({ body, ...rest }: Publication) =>
      dataOf(
        client.POST("/messages", {
          body: rest as never,
          bodySerializer: () => `${JSON.stringify(rest).slice(0, -1)},"body":${body}}`,
          headers: { "Idempotency-Key": key.current, "Content-Type": "application/json" },
        }),
      ),
    onSuccess(came) {
      for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
      onPublished(came);
    },
    onError: () => {
      key.current = randomKey(); // what is sent next may be another message
    },
  });
}

export type MessageEdit = Omit<Schemas["MessageEditRequest"], "encoding" | "force"> & {
  encoding?: "json" | "text" | "base64";
  force?: boolean;
};

export function useMessageEdit(id: string, onEdited: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (edit: MessageEdit) =>
      dataOf(client.PATCH("/messages/{id}", { params: { path: { id: Number(id) } }, body: edit as never })),
    onSuccess() {
      void queries.invalidateQueries({ queryKey: ["messages"] });
      onEdited();
    },
  });
}
