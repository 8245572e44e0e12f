// How a queue is, in a word or two, and which ones need a look.

import type { Queue } from "~/api/queues";
import * as texts from "~/texts/queues";
import type { Tone } from "~/ui";

export interface QueueState {
  tone: Tone;
  words: string;
}

/** What is worst about a queue. The findings are the server's verdict, the gravest first. */
export function stateOf(queue: Queue): QueueState {
  const [worst] = queue.findings.filter(({ code }) => code !== "paused");
  const grave = worst?.severity === "error" ? "bad" : "warn";
  if (!queue.exists) return { tone: "bad", words: texts.missing };
  if (worst?.severity === "error") return { tone: "bad", words: wordOf(worst.code) };
  if (queue.pauses.length > 0) return { tone: "warn", words: texts.paused };
  if (worst) return { tone: grave, words: wordOf(worst.code) };
  return living(queue).length > 0
    ? { tone: "good", words: texts.ok }
    : { tone: "warn", words: texts.noConsumer };
}

function wordOf(code: string): string {
  return texts.findings[code] ?? code.replaceAll("_", " ");
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
