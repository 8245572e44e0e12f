// Describes the request of an operation in text.

import type { Operation } from "~/api/operations";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/operations";

export function titleOf({ action, item_count: total }: Operation): string {
  return texts.actionOn(action, total);
}

/** Returns the state of an operation. `stopped` gets its own text, because a stopped component means something else. */
export function stateOf({ state }: Operation): string {
  return state === "stopped" ? texts.stoppedState : state;
}

/** Default failure rate at which a requeue stops. */
const DEFAULT_STOP_RATIO = 0.1;

/** Whether the operation is active, or waits for results of messages that it has sent. */
export function isOpen({ active, results }: Operation): boolean {
  return active || (results !== null && results.waiting + results.retrying > 0);
}

/** Describes the options, one sentence each: limit, destination, safety. */
export function optionSentences(of: Operation): readonly string[] {
  const { action, options } = of;
  const limit = options.max_items === null ? [] : [texts.limited(options.max_items)];
  if (action !== "requeue") return options.force ? [...limit, texts.forcedPurge] : limit;
  const { canary, rate_per_second: rate, stop_on_failure_ratio: ratio } = options;
  const share = `${Number((100 * (ratio ?? DEFAULT_STOP_RATIO)).toFixed(2))} %`;
  return [
    ...limit,
    destinationText(options),
    rate === null ? texts.unlimitedRate : texts.limitedRate(rate),
    ...(canary ? [texts.canary(canary.count, canary.wait_seconds, ratio === null ? undefined : share)] : []),
    ratio === 1 ? texts.neverStops : texts.stopsAt(share),
    ...(options.force ? [texts.forcedRequeue] : []),
  ];
}

function destinationText({ destination, original_routing }: Operation["options"]): string {
  if (destination) return texts.toQueue(destination);
  return original_routing ? texts.toBoundQueues : texts.toOriginalQueue;
}

export type Selection =
  | { kind: "ids"; ids: readonly string[]; count: number }
  | { kind: "filter"; phrases: readonly string[]; address: string };

/** Returns the selected dead letters and the address of a list of them, whatever their status is now. */
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
