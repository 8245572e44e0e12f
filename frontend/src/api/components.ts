// Relays, workers, archivers and maintenance, as their last sign of life tells of them.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useInterval } from "./live";

export type ComponentStatus = Schemas["Condition"];

export interface Component {
  id: string;
  kind: Schemas["ComponentKind"];
  name: string;
  host: string;
  processId: number;
  version: string;
  condition: ComponentStatus;
  /** Since when it is in that condition. */
  since: string;
  startedAt: string;
  seenAt: string;
  everySeconds: number;
  doing: Activity;
  consumers: readonly Consumer[];
  /** The pauses that it honours. */
  holds: readonly { scope: string; name: string }[];
}

/** What a component said that it was doing. */
export interface Activity {
  state: string;
  totals: Readonly<Record<string, number>>;
  perSecond: Readonly<Record<string, number>>;
  inHand: number | undefined;
  unsent: number | undefined;
  oldestDueSeconds: number | undefined;
  lastSentAt: string | undefined;
  wakesBy: string | undefined;
  pausedQueues: readonly string[];
  failingQueues: readonly string[];
  /** What it cannot reach, and how that failed. */
  waitingFor: Readonly<Record<string, string>>;
  lastError: Schemas["LastError"] | undefined;
}

/** What a worker runs for one queue. */
export interface Consumer {
  queue: string;
  bindingKey: string;
  prefetch: number;
  timeoutSeconds: number | undefined;
  maxDeliveries: number;
  retryDelays: readonly number[];
  retriesComputed: boolean;
  ordered: boolean;
  inbox: boolean;
  batch: boolean;
}

const SIGNS_COME_EVERY = 5_000;

export const components = queryOptions({
  queryKey: ["components", "all"] as const,
  queryFn: async ({ signal }) => {
    const found = await dataOf(client.GET("/components", { signal }));
    return { items: found.items.map(componentOf), pauses: found.pauses };
  },
  placeholderData: keepPreviousData,
});

export function useComponents() {
  return useQuery({ ...components, refetchInterval: useInterval(SIGNS_COME_EVERY) });
}

/** The JSON schemas of bodies that a worker takes, by queue: large, and the same for as long as it lives, so read once. */
export function useSchemas(id: string) {
  return useQuery({
    queryKey: ["schemas", id] as const,
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, object>> => {
      const query = { schemas: true };
      const { items } = await dataOf(client.GET("/components", { params: { query }, signal }));
      const consumers = items.find((one) => one.id === id)?.consumers ?? [];
      return new Map(consumers.flatMap(({ queue, body }) => (body ? [[queue, body] as const] : [])));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function componentOf(found: Schemas["ComponentNow"]): Component {
  return {
    id: found.id,
    kind: found.kind,
    name: found.name,
    host: found.host,
    processId: found.process_id,
    version: found.version,
    condition: found.condition,
    since: found.since,
    startedAt: found.started_at,
    seenAt: found.seen_at,
    everySeconds: found.every_seconds,
    doing: activityOf(found.activity),
    consumers: found.consumers.map(consumerOf),
    holds: found.applied,
  };
}

function activityOf(told: Schemas["ComponentActivity"]): Activity {
  return {
    state: told.state,
    totals: told.totals,
    perSecond: told.per_second,
    inHand: told.in_hand ?? undefined,
    unsent: told.unsent ?? undefined,
    oldestDueSeconds: told.oldest_due_seconds ?? undefined,
    lastSentAt: told.last_sent_at ?? undefined,
    wakesBy: told.wakes_by ?? undefined,
    pausedQueues: (told.paused_queues ?? []).filter((queue) => queue !== ""),
    failingQueues: told.failing_queues ?? [],
    waitingFor: told.waiting_for ?? {},
    lastError: told.last_error ?? undefined,
  };
}

function consumerOf(told: Schemas["DescribedConsumer"]): Consumer {
  return {
    queue: told.queue,
    bindingKey: told.binding_key,
    prefetch: told.prefetch_count,
    timeoutSeconds: told.timeout_seconds ?? undefined,
    maxDeliveries: told.max_deliveries,
    retryDelays: told.retry.delays_seconds,
    retriesComputed: told.retry.computed,
    ordered: told.ordered,
    inbox: told.inbox,
    batch: told.batch,
  };
}
