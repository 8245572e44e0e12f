// Where the cards of the tree are: a column for each level, and the first child next to its parent.

import type { Row } from "./rows";
import type { Item } from "./tree";
import type { Viewport } from "./viewport";

export const CARD = 216;
export const HEIGHT = 52;
export const MARGIN = 16;
export const COLUMN = CARD + 44;
const LINE = HEIGHT + 10;

export interface Box {
  row: Row;
  /** Which row it is. */
  index: number;
  x: number;
  y: number;
}

/** The line down next to a parent, to which its children are tied. */
export interface Trunk {
  parent: Box;
  children: Box[];
}

export interface Boxes {
  list: readonly Box[];
  trunks: readonly Trunk[];
  width: number;
  height: number;
}

/** Rows come each after its parent, so a row right behind its parent is its first child. */
export function boxesOf(rows: readonly Row[]): Boxes {
  const list: Box[] = [];
  const trunks = new Map<Item, Trunk>();
  let [line, deepest] = [-1, 0];
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    const parent = row.kind === "fold" ? row.parent : row.item.parent;
    const first = before?.kind === "message" && before.item === parent;
    if (!first) line += 1;
    deepest = Math.max(deepest, row.level);
    const box = { row, index, x: MARGIN + (row.level - 1) * COLUMN, y: MARGIN + line * LINE };
    list.push(box);
    if (parent) trunks.get(parent)?.children.push(box);
    if (row.kind === "message") trunks.set(row.item, { parent: box, children: [] });
  }
  return {
    list,
    trunks: [...trunks.values()].filter(({ children }) => children.length > 0),
    width: deepest * COLUMN - 44 + 2 * MARGIN,
    height: (line + 1) * LINE - 10 + 2 * MARGIN,
  };
}

const BEYOND = 120;

export function inSight({ list }: Boxes, seen: Viewport): Box[] {
  return list.filter(({ x, y }) => touches(seen, x, x + CARD, y, y + HEIGHT));
}

/** Lines that cross the part in sight, even where both of their ends lie outside. */
export function trunksInSight({ trunks }: Boxes, seen: Viewport): Trunk[] {
  return trunks.filter(({ parent, children }) => {
    const end = children.at(-1) ?? parent;
    return touches(seen, parent.x + CARD, parent.x + COLUMN, parent.y, end.y + HEIGHT);
  });
}

function touches(seen: Viewport, left: number, right: number, top: number, bottom: number): boolean {
  return (
    right >= seen.left - BEYOND &&
    left <= seen.left + seen.width + BEYOND &&
    bottom >= seen.top - BEYOND &&
    top <= seen.top + seen.height + BEYOND
  );
}
