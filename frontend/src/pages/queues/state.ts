// How a queue is, in a word or two, and which ones need a look.

import type { Queue, QueueDetail } from "~/api/queues";
import * as texts from "~/texts/queues";
import type { Tone } from "~/ui";
import type { Marker } from "~/ui/charts";

export interface QueueState {
  tone: Tone;
  words: string;
}

/** What is worst about a queue, as the server says. */
export function stateOf({ state, findings }: Queue): QueueState {
  const words = texts.states[state];
  if (state === "ok") return { tone: "good", words };
  const isGrave = state === "missing" || findings.some(({ severity }) => severity === "error");
  return { tone: isGrave ? "bad" : "warn", words };
}

/** The workers that consume it now. */
export function living(queue: Queue): Queue["consumers"] {
  return queue.consumers.filter(({ status }) => status !== "lost");
}

export function isTroubled(queue: Queue): boolean {
  return stateOf(queue).tone !== "good";
}

const GRAVITY: Partial<Record<Tone, number>> = { bad: 0, warn: 1 };

/** The gravest first, then by name, so that a queue keeps its place while numbers change. */
export function sorted(queues: readonly Queue[]): readonly Queue[] {
  const gravity = (queue: Queue) => GRAVITY[stateOf(queue).tone] ?? 2;
  return [...queues].sort((a, b) => gravity(a) - gravity(b) || a.name.localeCompare(b.name));
}

/** Those whose name or handler contains every word. */
export function found(queues: readonly Queue[], words: string): readonly Queue[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  return queues.filter(({ name, handlers }) => {
    const text = [name, ...handlers].join(" ").toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}

/** When each version was started first. */
export function versionsOf(starts: QueueDetail["worker_starts"]): readonly Marker[] {
  const first = new Map<string, number>();
  for (const { service_version, version: ours, started_at } of starts) {
    const version = service_version ?? ours;
    const at = Date.parse(started_at) / 1000;
    first.set(version, Math.min(at, first.get(version) ?? at));
  }
  return [...first].map(([version, at]) => ({ at, name: texts.started(version) }));
}
