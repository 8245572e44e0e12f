// A chain as a tree. Tolerates cycles, missing parents and duplicate IDs in the data.

import type { Chain, ChainMessage } from "~/api/chains";
import { rank } from "./severity";

export interface Item {
  message: ChainMessage;
  parent: Item | undefined;
  children: Item[];
  depth: number;
  /** Number of messages below it, at any depth. */
  descendantCount: number;
  /** Rank of the most severe state of the message and its descendants; lower is more severe. */
  worst: number;
  /** On the critical path, unless all messages are. */
  critical: boolean;
  /** The queue on the critical path, for a message with several queues; undefined if unknown. */
  criticalQueue: string | undefined;
  /** Not the first message of the chain, and without a known cause. */
  orphan: boolean;
}

export interface Tree {
  /** The first message of the chain, then those without a known cause. */
  roots: readonly Item[];
  /** All items, depth-first. */
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
  for (const root of roots) appendSubtree(root, items, seen);
  for (const item of byId.values()) {
    if (seen.has(item)) continue;
    detach(item);
    roots.push(item);
    appendSubtree(item, items, seen);
  }
  for (const root of roots) root.orphan = root.message.id !== chain.root_id;
  aggregate(items);
  return { roots: roots.sort((one, other) => Number(one.orphan) - Number(other.orphan)), items, byId };
}

function itemsById(chain: Chain): Map<string, Item> {
  const path = new Set(chain.critical_path);
  // If every message is on the critical path, marking them distinguishes nothing.
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
      descendantCount: 0,
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

/**
 * Returns the queue whose handler ran when the next message was published, unless another one ran then, too; at the end of the
 * path, the queue handled last.
 */
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
  const running = runs.filter(({ from, to }) => from - RECORD_DELAY <= moment && moment <= to);
  const queues = new Set(running.map(({ queue }) => queue));
  return queues.size === 1 ? running[0]?.queue : undefined;
}

/** Milliseconds from the end of a handler to its record, at most: a handler seems to have run so much later than it did. */
const RECORD_DELAY = 100;

/** Appends `start` and its descendants to `items`. Not recursive, because every message may be the cause of the next. */
function appendSubtree(start: Item, items: Item[], seen: Set<Item>): void {
  const waiting = [start];
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    if (seen.has(item)) continue;
    seen.add(item);
    item.depth = item.parent === undefined ? 0 : item.parent.depth + 1;
    items.push(item);
    for (const child of item.children.toReversed()) waiting.push(child);
  }
}

/** Removes an item from its parent, to break a cycle. */
function detach(item: Item): void {
  const parent = item.parent;
  if (parent) parent.children = parent.children.filter((child) => child !== item);
  item.parent = undefined;
}

function aggregate(items: readonly Item[]): void {
  for (const item of items.toReversed()) {
    if (!item.parent) continue;
    item.parent.descendantCount += item.descendantCount + 1;
    item.parent.worst = Math.min(item.parent.worst, item.worst);
  }
}
