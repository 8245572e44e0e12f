// A chain as table rows, one per message and queue.

import type { ChainMessage, Delivery } from "~/api/chains";
import { rank } from "./severity";
import type { Item } from "./tree";

export interface Line {
  key: string;
  item: Item;
  delivery: Delivery | undefined;
  state: string;
  /** The last error. */
  error: string | undefined;
}

export type SortBy = "chain" | "state" | "published" | "outbox" | "broker" | "handling" | "attempts";

export function linesOf(items: readonly Item[]): Line[] {
  return items.flatMap((item) => {
    const { message } = item;
    if (message.deliveries.length === 0) return [lineOf(item, undefined, 0)];
    return message.deliveries.map((delivery, index) => lineOf(item, delivery, index));
  });
}

function lineOf(item: Item, delivery: Delivery | undefined, index: number): Line {
  const { message } = item;
  return {
    key: `${index} ${message.id}`,
    item,
    delivery,
    state: delivery?.state ?? message.state,
    error: delivery ? toFailure(delivery) : message.last_error?.message,
  };
}

function toFailure({ attempts }: Delivery): string | undefined {
  const error = attempts.findLast((attempt) => attempt.error !== null)?.error;
  return error ? [error.type, error.message].filter(Boolean).join(": ") : undefined;
}

/** Sorts lines. Those without a value come last in both directions; equal ones keep the order of the chain. */
export function sorted(lines: readonly Line[], by: SortBy, down: boolean): readonly Line[] {
  if (by === "chain") return down ? lines.toReversed() : lines;
  const value = VALUES[by];
  const direction = down ? -1 : 1;
  return lines.toSorted((one, other) => {
    const [left, right] = [value(one), value(other)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return (left - right) * direction;
  });
}

const VALUES: Record<Exclude<SortBy, "chain">, (line: Line) => number | null> = {
  state: ({ state }) => rank(state),
  published: ({ item }) => time(item.message),
  outbox: ({ item }) => item.message.waited_seconds,
  broker: ({ delivery }) => delivery?.waited_seconds ?? null,
  handling: ({ delivery }) => delivery?.handling_seconds ?? null,
  attempts: ({ delivery }) => delivery?.attempt_count ?? null,
};

function time({ published_at }: ChainMessage): number | null {
  return published_at === null ? null : Date.parse(published_at);
}
