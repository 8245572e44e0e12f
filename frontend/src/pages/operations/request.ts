// What an operation was asked for, as sentences.

import type { Operation } from "~/api/operations";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/operations";

export function titleOf({ action, item_count: total }: Operation): string {
  return texts.actionOn(action, total);
}

/** The status of an operation, which differs from a component's of the same name. */
export function stateOf({ state }: Operation): string {
  return state === "stopped" ? texts.stoppedState : state;
}

/** Past which share of failures a requeue stops unless chosen otherwise. */
const STOP_RATIO = 0.1;

/** Whether it goes on, or something may still become of what it has sent. */
export function isOpen({ active, results }: Operation): boolean {
  return active || (results !== null && results.waiting + results.retrying > 0);
}

/** The options, one sentence each: number, destination, safety. */
export function optionSentences(of: Operation): readonly string[] {
  const { action, options } = of;
  const limit = options.max_items === null ? [] : [texts.limited(options.max_items)];
  if (action !== "requeue") return options.force ? [...limit, texts.forcedPurge] : limit;
  const { canary, rate_per_second: rate, stop_on_failure_ratio: ratio } = options;
  const share = `${Number((100 * (ratio ?? STOP_RATIO)).toFixed(2))} %`;
  return [
    ...limit,
    destinationInWords(options),
    rate === null ? texts.unlimitedRate : texts.limitedRate(rate),
    ...(canary ? [texts.canary(canary.count, canary.wait_seconds, ratio === null ? undefined : share)] : []),
    ratio === 1 ? texts.neverStops : texts.stopsAt(share),
    ...(options.force ? [texts.forcedRequeue] : []),
  ];
}

function destinationInWords({ destination, original_routing }: Operation["options"]): string {
  if (destination) return texts.toQueue(destination);
  return original_routing ? texts.toBoundQueues : texts.toOriginalQueue;
}

export type Selection =
  | { kind: "ids"; ids: readonly string[]; count: number }
  | { kind: "filter"; phrases: readonly string[]; address: string };

/** Which dead letters were meant, and the address of a list of them, whatever became of them since. */
export function selectionOf({ selector }: Operation, zone: Zone, groupTitle?: string): Selection {
  const { ids, count } = selector;
  if (ids) return { kind: "ids", ids, count: count ?? ids.length };
  const filter = Object.entries(selector.filter ?? {}).map(([name, value]) => [name, String(value)] as const);
  const found = new URLSearchParams(filter.filter(([name]) => name !== "status").map((pair) => [...pair]));
  found.set("view", "messages");
  found.set("status", "any");
  return {
    kind: "filter",
    phrases: filter.map(([name, value]) => {
      const known = name === "group_id" ? (groupTitle ?? value) : value;
      return texts.filterPhrases[name]?.(known, zone) ?? `${name} ${value}`;
    }),
    address: `/dead-letters?${found}`,
  };
}
