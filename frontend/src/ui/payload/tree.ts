// Rows of a JSON tree as a flat list, so that collapsed nodes cost nothing.

import type { JsonNode } from "~/lib/json";

export interface Row {
  /** Child indexes from the root: `0/3/1`. */
  path: string;
  depth: number;
  /** Key or index; undefined for the root. */
  name: string | undefined;
  node: JsonNode;
  /** Number of siblings including this row, and its position among them, from 1. */
  position: readonly [number, number];
  open: boolean;
}

export interface More {
  more: number;
  path: string;
  depth: number;
}

export const INITIAL_CHILDREN = 100;
const MAX_INITIAL_ROWS = 120;

export function sizeOf(node: JsonNode): number {
  if (node.kind === "object") return node.members.length;
  return node.kind === "array" ? node.items.length : 0;
}

/** Initially expanded nodes: the root, and nested nodes while the total number of rows is small. */
export function initiallyOpen(root: JsonNode): ReadonlySet<string> {
  const open = new Set<string>();
  let level: { path: string; node: JsonNode }[] = [{ path: "0", node: root }];
  let shown = 1;
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { path, node } of level) {
      const inside = sizeOf(node);
      if (inside === 0 || (shown + inside > MAX_INITIAL_ROWS && path !== "0")) continue;
      shown += Math.min(inside, INITIAL_CHILDREN);
      open.add(path);
      children(node, INITIAL_CHILDREN).forEach((child, index) => {
        next.push({ path: `${path}/${index}`, node: child.node });
      });
    }
    level = next;
  }
  return open;
}

/** Rows from top to bottom. `limits` overrides how many children of a node are shown. */
export function rowsOf(
  root: JsonNode,
  open: ReadonlySet<string>,
  limits: ReadonlyMap<string, number>,
): readonly (Row | More)[] {
  const rows: (Row | More)[] = [];
  const waiting: (Row | More)[] = [
    { path: "0", depth: 0, name: undefined, node: root, position: [1, 1], open: open.has("0") },
  ];
  for (let row = waiting.pop(); row; row = waiting.pop()) {
    rows.push(row);
    if ("more" in row || !row.open) continue;
    const { path, depth, node } = row;
    const all = sizeOf(node);
    const limit = limits.get(path) ?? INITIAL_CHILDREN;
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
          position: [all, index + 1],
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
