// Relays, workers, archivers and maintenance, as of their last heartbeat.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useInterval } from "./live";

export type ComponentStatus = Schemas["ComponentStatus"];

export interface Component {
  id: string;
  kind: Schemas["ComponentKind"];
  name: string;
  host: string;
  processId: number;
  version: string;
  status: ComponentStatus;
  /** When its status last changed. */
  statusChangedAt: string;
  startedAt: string;
  lastHeartbeatAt: string;
  heartbeatIntervalSeconds: number;
  activity: Activity;
  consumers: readonly Consumer[];
  /** Pauses that apply to it. */
  appliedPauses: readonly { scope: string; name: string }[];
}

/** What a component reports. */
export interface Activity {
  state: string;
  totals: Readonly<Record<string, number>>;
  perSecond: Readonly<Record<string, number>>;
  inFlight: number | undefined;
  /** Relays only: the destination that it serves. */
  destination: string | undefined;
  unsent: number | undefined;
  oldestDueAgeSeconds: number | undefined;
  lastSentAt: string | undefined;
  wakesBy: string | undefined;
  pausedQueues: readonly string[];
  failingQueues: readonly string[];
  /** Dependencies it cannot reach, with the error of each. */
  waitingFor: Readonly<Record<string, string>>;
  lastFailure: Schemas["ComponentFailure"] | undefined;
}

/** What a worker runs for one queue. */
export interface Consumer {
  queue: string;
  /** Qualified name of its callback; empty if an older release does not report it. */
  handler: string;
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

const REFETCH_INTERVAL = 5_000;

export const components = queryOptions({
  queryKey: ["components", "all"] as const,
  queryFn: async ({ signal }) => {
    const found = await unwrap(client.GET("/components", { signal }));
    return { items: found.items.map(toComponent), pauses: found.pauses };
  },
  placeholderData: keepPreviousData,
});

export function useComponents() {
  return useQuery({ ...components, refetchInterval: useInterval(REFETCH_INTERVAL) });
}

/** JSON schemas of the bodies a worker accepts, by queue. Loaded once: they are large and never change while it runs. */
export function useSchemas(id: string) {
  return useQuery({
    queryKey: ["schemas", id] as const,
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, object>> => {
      const query = { schemas: true };
      const { items } = await unwrap(client.GET("/components", { params: { query }, signal }));
      const consumers = items.find((component) => component.id === id)?.consumers ?? [];
      return new Map(consumers.flatMap(({ queue, body }) => (body ? [[queue, body] as const] : [])));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function toComponent(found: Schemas["ComponentResponse"]): Component {
  return {
    id: found.id,
    kind: found.kind,
    name: found.name,
    host: found.host,
    processId: found.process_id,
    version: found.service_version ?? found.version,
    status: found.status,
    statusChangedAt: found.status_changed_at,
    startedAt: found.started_at,
    lastHeartbeatAt: found.last_heartbeat_at,
    heartbeatIntervalSeconds: found.heartbeat_interval_seconds,
    activity: toActivity(found.activity),
    consumers: found.consumers.map(toConsumer),
    appliedPauses: found.applied_pauses,
  };
}

function toActivity(activity: Schemas["ComponentActivity"]): Activity {
  return {
    state: activity.state,
    totals: activity.totals,
    perSecond: activity.per_second,
    inFlight: activity.in_flight ?? undefined,
    destination: activity.destination ?? undefined,
    unsent: activity.unsent ?? undefined,
    oldestDueAgeSeconds: activity.oldest_due_age_seconds ?? undefined,
    lastSentAt: activity.last_sent_at ?? undefined,
    wakesBy: activity.wakes_by ?? undefined,
    pausedQueues: (activity.paused_queues ?? []).filter((queue) => queue !== ""),
    failingQueues: activity.failing_queues ?? [],
    waitingFor: activity.waiting_for ?? {},
    lastFailure: activity.last_failure ?? undefined,
  };
}

function toConsumer(consumer: Schemas["ConsumerResponse"]): Consumer {
  return {
    queue: consumer.queue,
    handler: consumer.handler,
    bindingKey: consumer.binding_key,
    prefetch: consumer.prefetch_count,
    timeoutSeconds: consumer.timeout_seconds ?? undefined,
    maxDeliveries: consumer.max_deliveries,
    retryDelays: consumer.retry.delays_seconds,
    retriesComputed: consumer.retry.computed,
    ordered: consumer.ordered,
    inbox: consumer.inbox,
    batch: consumer.batch,
  };
}
