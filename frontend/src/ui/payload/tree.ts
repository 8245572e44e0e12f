// The rows that a tree of JSON shows: one list, so that thousands of nodes cost what is in sight.

import type { JsonNode } from "~/lib/json";

export interface Row {
  /** `0/3/1`: positions from the root on. */
  path: string;
  depth: number;
  /** Its key or position; undefined for the root. */
  name: string | undefined;
  node: JsonNode;
  /** How many siblings it has with itself, and which of them it is, from 1. */
  among: readonly [number, number];
  open: boolean;
}

export interface More {
  more: number;
  path: string;
  depth: number;
}

export const CHILDREN_AT_FIRST = 100;
const OPEN_AT_FIRST = 120;

export function sizeOf(node: JsonNode): number {
  if (node.kind === "object") return node.members.length;
  return node.kind === "array" ? node.items.length : 0;
}

/** What is open at first: the root, and what is inside as long as little is. */
export function openAtFirst(root: JsonNode): ReadonlySet<string> {
  const open = new Set<string>();
  let level: { path: string; node: JsonNode }[] = [{ path: "0", node: root }];
  let shown = 1;
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { path, node } of level) {
      const inside = sizeOf(node);
      if (inside === 0 || (shown + inside > OPEN_AT_FIRST && path !== "0")) continue;
      shown += Math.min(inside, CHILDREN_AT_FIRST);
      open.add(path);
      children(node, CHILDREN_AT_FIRST).forEach((child, index) => {
        next.push({ path: `${path}/${index}`, node: child.node });
      });
    }
    level = next;
  }
  return open;
}

/** Rows from top to bottom. `limits` says of how many children more than the first hundred are shown. */
export function rowsOf(
  root: JsonNode,
  open: ReadonlySet<string>,
  limits: ReadonlyMap<string, number>,
): readonly (Row | More)[] {
  const rows: (Row | More)[] = [];
  const waiting: (Row | More)[] = [
    { path: "0", depth: 0, name: undefined, node: root, among: [1, 1], open: open.has("0") },
  ];
  for (let row = waiting.pop(); row; row = waiting.pop()) {
    rows.push(row);
    if ("more" in row || !row.open) continue;
    const { path, depth, node } = row;
    const all = sizeOf(node);
    const limit = limits.get(path) ?? CHILDREN_AT_FIRST;
    if (all > limit) waiting.push({ more: all - limit, path, depth: depth + 1 });
    const shown = children(node, limit);
    for (let index = shown.length - 1; index >= 0; index -= 1) {
      const child = shown[index];
      const inner = `${path}/${index}`;
      if (child) {
        waiting.push({
          path: inner,
          depth: depth + 1,
          ...child,
          among: [all, index + 1],
          open: open.has(inner),
        });
      }
    }
  }
  return rows;
}

function children(node: JsonNode, limit: number): readonly { name: string; node: JsonNode }[] {
  if (node.kind === "object") {
    return node.members.slice(0, limit).map(({ key, node: child }) => ({ name: key, node: child }));
  }
  if (node.kind !== "array") return [];
  return node.items.slice(0, limit).map((child, index) => ({ name: String(index), node: child }));
}
