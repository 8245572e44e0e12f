// A chain as a tree of items, whatever its messages claim: safe against circles, missing parents and ids that come twice.

import type { Chain, ChainMessage } from "~/api/chains";
import { rank } from "./gravity";

export interface Item {
  message: ChainMessage;
  parent: Item | undefined;
  children: Item[];
  depth: number;
  /** How many messages follow from it, at any depth. */
  below: number;
  /** The gravest state of it and of what follows from it, as a rank: the lower, the graver. */
  worst: number;
  /** It lies on the way to what happened last. */
  critical: boolean;
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
  const critical = new Set(chain.critical_path);
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
      orphan: false,
    });
  }
  return byId;
}

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
