// States of queues, sorting and search.

import type { Queue, QueueDetail } from "~/api/queues";
import * as texts from "~/texts/queues";
import type { Tone } from "~/ui";
import type { Marker } from "~/ui/charts";

export interface QueueState {
  tone: Tone;
  words: string;
}

/** Returns label and tone of the state that the server reports. */
export function stateOf({ state, findings }: Queue): QueueState {
  const words = texts.states[state];
  if (state === "ok") return { tone: "good", words };
  const isSevere = state === "missing" || findings.some(({ severity }) => severity === "error");
  return { tone: isSevere ? "bad" : "warn", words };
}

/** Returns the workers that consume the queue now. */
export function activeConsumers(queue: Queue): Queue["consumers"] {
  return queue.consumers.filter(({ status }) => status !== "lost");
}

export function hasProblem(queue: Queue): boolean {
  return stateOf(queue).tone !== "good";
}

const SEVERITY: Partial<Record<Tone, number>> = { bad: 0, warn: 1 };

/** Sorts by severity, then by name, so that queues keep their position while numbers change. */
export function sorted(queues: readonly Queue[]): readonly Queue[] {
  const severity = (queue: Queue) => SEVERITY[stateOf(queue).tone] ?? 2;
  return [...queues].sort((a, b) => severity(a) - severity(b) || a.name.localeCompare(b.name));
}

/** Returns the queues whose name or handlers contain every word. */
export function found(queues: readonly Queue[], words: string): readonly Queue[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  return queues.filter(({ name, handlers }) => {
    const text = [name, ...handlers].join(" ").toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}

/** Returns a marker for the first start of each version. */
export function versionsOf(starts: QueueDetail["worker_starts"]): readonly Marker[] {
  const first = new Map<string, number>();
  for (const { service_version, version: ours, started_at } of starts) {
    const version = service_version ?? ours;
    const at = Date.parse(started_at) / 1000;
    first.set(version, Math.min(at, first.get(version) ?? at));
  }
  return [...first].map(([version, at]) => ({ at, name: texts.started(version) }));
}
