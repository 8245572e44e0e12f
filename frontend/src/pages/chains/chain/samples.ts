// Chains for tests.

import type { Attempt, Chain, ChainMessage, Leg } from "~/api/chains";

export function message(
  id: string,
  parentId: string | null,
  facts: Partial<ChainMessage> = {},
): ChainMessage {
  return {
    id,
    parentId,
    state: "processed",
    routingKey: `key.${id}`,
    publishedAt: at(0),
    sentAt: at(1),
    waitedSeconds: 1,
    dueAt: null,
    relay: "relay-1",
    error: null,
    requeues: 0,
    legs: [],
    ...facts,
  };
}

export function chain(messages: readonly ChainMessage[], facts: Partial<Chain> = {}): Chain {
  return {
    rootId: messages[0]?.id ?? "",
    state: "processed",
    seconds: 1,
    criticalPath: [],
    truncated: false,
    unknown: [],
    messages,
    ...facts,
  };
}

export function leg(facts: Partial<Leg> = {}): Leg {
  return {
    queue: "mail",
    state: "processed",
    attempts: 1,
    receivedAt: null,
    waitedSeconds: null,
    handlingSeconds: null,
    dueAt: null,
    tries: [],
    ...facts,
  };
}

export function attempt(second: number, outcome: string, seconds: number | null = 1, number = 1): Attempt {
  return { endedAt: at(second), number, outcome, seconds, error: null, worker: "worker-1" };
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
