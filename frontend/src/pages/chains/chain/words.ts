// What is said of a row: to screen readers, and where a drawing has room for words.

import type { Leg } from "~/api/chains";
import { number, plural, span } from "~/lib/format";
import { lookOf } from "~/ui";
import type { FoldRow } from "./rows";
import type { Item } from "./tree";

export const KINDS = {
  outbox: "Waited in the outbox",
  broker: "Waited in the broker",
  handling: "Handled",
  retry: "Waited for the next attempt",
  dead: "Lay among the dead letters",
} as const;

export const OUTCOMES: Record<string, string> = {
  processed: "done",
  retried: "failed, to be tried again",
  died: "failed, and died",
  duplicate: "had been handled before",
};

export function nameOf({ message }: Item): string {
  return message.routing_key || message.id || "(no name)";
}

/** All of what the colours and lengths of a row tell. */
export function described(item: Item, leg: Leg | undefined, seconds: number | undefined): string {
  const { message, critical, criticalQueue, orphan, children } = item;
  const attempts = leg ? leg.attempts : Math.max(0, ...message.legs.map((each) => each.attempts));
  return [
    lookOf(leg?.state ?? message.state).label,
    leg && `in ${leg.queue}`,
    seconds !== undefined && `took ${span(seconds)}`,
    attempts > 1 && plural(attempts, "attempt"),
    !leg && children.length > 0 && `${plural(children.length, "message")} from it`,
    (leg ? leg.queue === criticalQueue : critical) && "on the way to what happened last",
    orphan && "what it follows from is not known",
  ]
    .filter(Boolean)
    .join(", ");
}

export function foldWords({ hidden, of, states }: FoldRow): string {
  if (hidden === 0) return `All ${number(of)} are shown. Fold them`;
  const all = states.length === 1 ? `all ${lookOf(states[0]?.[0] ?? "").label}` : undefined;
  const each = states.map(([state, count]) => `${number(count)} ${lookOf(state).label}`).join(", ");
  return `and ${number(hidden)} more (${all ?? each})`;
}
