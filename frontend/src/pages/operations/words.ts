// What an operation was asked for, as sentences.

import type { Operation } from "~/api/operations";
import { moment, number, plural, span, type Zone } from "~/lib/format";

const TITLES: Record<Operation["action"], string> = {
  requeue: "Requeue",
  discard: "Discard",
  restore: "Restore",
  purge: "Delete for good",
};

export function titleOf({ action, total }: Operation): string {
  return `${TITLES[action]} ${plural(total, "dead letter")}`;
}

/** How states of operations are called where they mean something else than for components. */
export function stateOf({ state }: Operation): string {
  return state === "stopped" ? "stopped itself" : state;
}

/** Past which share of failures a requeue stops itself unless somebody says otherwise. */
const STOP_RATIO = 0.1;

/** Whether it goes on, or something may still become of what it has sent. */
export function isOpen({ going_on, results }: Operation): boolean {
  return going_on || (results !== null && results.waiting + results.retrying > 0);
}

/** How many, where to, and how carefully. */
export function optionsInWords(of: Operation): readonly string[] {
  const most = of.options.max_items;
  return [...(most === null ? [] : [`At most ${number(most)}, the oldest.`]), ...howInWords(of)];
}

function howInWords({ action, options, total }: Operation): readonly string[] {
  const those = (one: string, several: string) => (total === 1 ? one : several);
  if (action !== "requeue") {
    return options.force
      ? [those("Also if it was not discarded.", "Also those that were not discarded.")]
      : [];
  }
  const { canary, rate_per_second: rate, stop_on_failure_ratio: ratio } = options;
  const share = `${Number((100 * (ratio ?? STOP_RATIO)).toFixed(2))} %`;
  const bad = ratio === null ? "unless any attempt fails" : `unless more than ${share} of them fail`;
  return [
    destinationInWords(options, total),
    rate === null ? "As fast as it goes." : `At most ${number(rate)} a second.`,
    ...(canary
      ? [
          `${number(canary.count)} go first; the others follow when those were handled, ${bad}. That is waited for ${span(canary.wait_seconds)} at most.`,
        ]
      : []),
    ratio === 1 ? "It does not stop itself." : `It stops itself when more than ${share} fail.`,
    ...(options.force
      ? [
          those(
            "Also if it is older than inboxes remember.",
            "Also those that are older than inboxes remember.",
          ),
        ]
      : []),
  ];
}

function destinationInWords({ destination, original_routing }: Operation["options"], total: number): string {
  if (destination) return `To the queue ${destination}.`;
  if (original_routing) return "To every queue that the routing key leads to.";
  return total === 1 ? "To the queue that it died in." : "To the queue that each died in.";
}

export type Meant =
  | { kind: "ids"; ids: readonly string[]; count: number }
  | { kind: "filter"; phrases: readonly string[]; address: string };

/** Which dead letters were meant, and the address of a list of them, whatever became of them since. */
export function meantBy({ selector }: Operation, zone: Zone): Meant {
  const { ids, count } = selector;
  if (ids) return { kind: "ids", ids, count: count ?? ids.length };
  const filter = Object.entries(selector.filter ?? {}).map(([name, value]) => [name, String(value)] as const);
  const found = new URLSearchParams(filter.filter(([name]) => name !== "status").map((pair) => [...pair]));
  found.set("status", "any");
  return {
    kind: "filter",
    phrases: filter.map(([name, value]) => PHRASES[name]?.(value, zone) ?? `${name} ${value}`),
    address: `/dead-letters?${found}`,
  };
}

const PHRASES: Record<string, (value: string, zone: Zone) => string> = {
  status: (value) => `that were ${value}`,
  source: (value) => `that the ${value} gave up`,
  queue: (value) => `of the queue ${value}`,
  routing_key: (value) => `with the routing key ${value}`,
  exception_type: (value) => `with the exception ${value}`,
  group_id: (value) => `of the group ${value}`,
  tracking_id: (value) => `of the chain of ${value}`,
  message_id: (value) => `of the message ${value}`,
  failed_after: (value, zone) => `that died at ${moment(value, zone)} or later`,
  failed_before: (value, zone) => `that died before ${moment(value, zone)}`,
  min_failures: (value) => `with ${value} failures or more`,
  q: (value) => `found by “${value}”`,
};
