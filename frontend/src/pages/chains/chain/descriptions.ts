// Texts of the rows, for screen readers and labels.

import type { Delivery } from "~/api/chains";
import { number, span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { stateStyle } from "~/ui";
import type { FoldRow } from "./rows";
import type { Item } from "./tree";

export const KINDS = {
  outbox: texts.waitedInOutbox,
  broker: texts.waitedInBroker,
  handling: texts.handled,
  retry: texts.waitedForRetry,
  dead: texts.wasDeadLetter,
} as const;

export const OUTCOMES: Record<string, string> = {
  processed: texts.doneOutcome,
  retried: texts.retriedOutcome,
  dead_lettered: texts.deadLetteredOutcome,
  duplicate: texts.duplicateOutcome,
};

export function nameOf({ message }: Item): string {
  return message.routing_key || message.id || texts.noName;
}

/** Describes in text what the colours and lengths of a row show. */
export function descriptionOf(
  item: Item,
  delivery: Delivery | undefined,
  seconds: number | undefined,
): string {
  const { message, critical, criticalQueue, orphan, children } = item;
  const attempts = delivery
    ? delivery.attempt_count
    : Math.max(0, ...message.deliveries.map((each) => each.attempt_count));
  return [
    stateStyle(delivery?.state ?? message.state).label,
    delivery && texts.inQueue(delivery.queue),
    seconds !== undefined && texts.took(span(seconds)),
    attempts > 1 && texts.attemptsCount(attempts),
    !delivery && children.length > 0 && texts.effectsOfIt(children.length),
    (delivery ? delivery.queue === criticalQueue : critical) && texts.onCriticalPath,
    orphan && texts.parentUnknown,
  ]
    .filter(Boolean)
    .join(", ");
}

export function foldLabel({ hidden, of, states }: FoldRow): string {
  if (hidden === 0) return texts.foldAll(of);
  const all = states.length === 1 ? texts.allInState(stateStyle(states[0]?.[0] ?? "").label) : undefined;
  const each = states.map(([state, count]) => `${number(count)} ${stateStyle(state).label}`).join(", ");
  return texts.andMore(hidden, all ?? each);
}
