// Sample chains for tests.

import type { Attempt, Chain, ChainMessage, Delivery } from "~/api/chains";

export function message(
  id: string,
  parentId: string | null,
  facts: Partial<ChainMessage> = {},
): ChainMessage {
  return {
    id,
    parent_id: parentId,
    depth: 0,
    state: "processed",
    routing_key: `key.${id}`,
    published_at: at(0),
    sent_at: at(1),
    waited_seconds: 1,
    due_at: null,
    held_at: null,
    relay: "relay-1",
    last_error: null,
    requeue_count: 0,
    trace_id: null,
    external: { log_url: null, trace_url: null },
    deliveries: [],
    ...facts,
  };
}

export function chain(nodes: ChainMessage[], facts: Partial<Chain> = {}): Chain {
  return {
    root_id: nodes[0]?.id ?? "",
    state: "processed",
    duration_seconds: 1,
    critical_path: [],
    truncated: false,
    gaps: [],
    nodes,
    ...facts,
  };
}

export function delivery(facts: Partial<Delivery> = {}): Delivery {
  return {
    queue: "mail",
    state: "processed",
    attempt_count: 1,
    received_at: null,
    waited_seconds: null,
    handling_seconds: null,
    due_at: null,
    waiting: null,
    attempts: [],
    ...facts,
  };
}

export function attempt(
  second: number,
  outcome: Attempt["outcome"],
  seconds: number | null = 1,
  number = 1,
): Attempt {
  return {
    ended_at: at(second),
    attempt: number,
    outcome,
    handling_seconds: seconds,
    error: null,
    component: "worker-1",
    trace_id: null,
    external: { log_url: null, trace_url: null },
  };
}

export function at(second: number): string {
  return new Date(Date.UTC(2026, 10, 20) + second * 1000).toISOString();
}

export function second(time: number): number {
  return (time - Date.UTC(2026, 10, 20)) / 1000;
}

export function wide(
  count: number,
  facts: (index: number) => Partial<ChainMessage> = () => ({}),
): ChainMessage[] {
  const children = Array.from({ length: count }, (_, index) => message(`c${index}`, "root", facts(index)));
  return [message("root", null), ...children];
}
