// A chain as a tree of items, whatever its messages claim: safe against circles, missing parents and ids that come twice.

import type { Chain, ChainMessage } from "~/api/chains";
import { rank } from "./severity";

export interface Item {
  message: ChainMessage;
  parent: Item | undefined;
  children: Item[];
  depth: number;
  /** How many messages follow from it, at any depth. */
  below: number;
  /** The gravest state of it and of what follows from it, as a rank: the lower, the graver. */
  worst: number;
  /** It lies on the way to what happened last, and other messages do not. */
  critical: boolean;
  /** Of several queues, the one by way of which it went on to what happened last; undefined: of one, or not known. */
  criticalQueue: string | undefined;
  /** It does not begin the chain, and hangs from nothing that is known. */
  orphan: boolean;
}

export interface Tree {
  /** What begins the chain first, then what hangs from nothing. */
  roots: readonly Item[];
  /** Each item after its parent, and before its next sibling. */
  items: readonly Item[];
  byId: ReadonlyMap<string, Item>;
}

export function treeOf(chain: Chain): Tree {
  const byId = itemsById(chain);
  for (const item of byId.values()) {
    const parent = byId.get(item.message.parent_id ?? "");
    if (parent === undefined || parent === item) continue;
    item.parent = parent;
    parent.children.push(item);
  }
  const roots = [...byId.values()].filter(({ parent }) => parent === undefined);
  const items: Item[] = [];
  const seen = new Set<Item>();
  for (const root of roots) place(root, items, seen);
  for (const item of byId.values()) {
    if (seen.has(item)) continue;
    cutOff(item);
    roots.push(item);
    place(item, items, seen);
  }
  for (const root of roots) root.orphan = root.message.id !== chain.root_id;
  sumUp(items);
  return { roots: roots.sort((one, other) => Number(one.orphan) - Number(other.orphan)), items, byId };
}

function itemsById(chain: Chain): Map<string, Item> {
  const path = new Set(chain.critical_path);
  // Where every message lies on it, it tells nothing apart.
  const critical = chain.nodes.some(({ id }) => !path.has(id)) ? path : new Set<string>();
  const next = new Map(chain.critical_path.map((id, index) => [id, chain.critical_path[index + 1]]));
  const published = new Map(chain.nodes.map(({ id, published_at }) => [id, published_at]));
  const byId = new Map<string, Item>();
  for (const message of chain.nodes) {
    if (byId.has(message.id)) continue;
    byId.set(message.id, {
      message,
      parent: undefined,
      children: [],
      depth: 0,
      below: 0,
      worst: rank(message.state),
      critical: critical.has(message.id),
      criticalQueue: path.has(message.id)
        ? criticalQueueOf(message, published.get(next.get(message.id) ?? ""))
        : undefined,
      orphan: false,
    });
  }
  return byId;
}

/** The queue whose handler ran when the next message was published; at the end of the path, the one that was handled last. */
function criticalQueueOf(
  { deliveries }: ChainMessage,
  published: string | null | undefined,
): string | undefined {
  if (deliveries.length < 2) return undefined;
  const runs = deliveries.flatMap(({ queue, attempts }) =>
    attempts.flatMap(({ ended_at: at, handling_seconds: seconds }) => {
      const to = at === null ? Number.NaN : Date.parse(at);
      return Number.isNaN(to) ? [] : [{ queue, from: to - (seconds ?? 0) * 1000, to }];
    }),
  );
  if (published === undefined || published === null)
    return runs.sort((one, other) => other.to - one.to)[0]?.queue;
  const moment = Date.parse(published);
  return runs.find(({ from, to }) => from - CLOCKS <= moment && moment <= to + CLOCKS)?.queue;
}

/** Milliseconds by which the times of two tables may differ. */
const CLOCKS = 5;

/** Puts what follows from `start` behind it, without recursion: a chain may be as deep as it is long. */
function place(start: Item, items: Item[], seen: Set<Item>): void {
  const waiting = [start];
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    if (seen.has(item)) continue;
    seen.add(item);
    item.depth = item.parent === undefined ? 0 : item.parent.depth + 1;
    items.push(item);
    for (const child of item.children.toReversed()) waiting.push(child);
  }
}

/** Of a circle, one has to be first. */
function cutOff(item: Item): void {
  const parent = item.parent;
  if (parent) parent.children = parent.children.filter((child) => child !== item);
  item.parent = undefined;
}

function sumUp(items: readonly Item[]): void {
  for (const item of items.toReversed()) {
    if (!item.parent) continue;
    item.parent.below += item.below + 1;
    item.parent.worst = Math.min(item.parent.worst, item.worst);
  }
}
