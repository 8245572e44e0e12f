// Positions of the cards in the tree view: one column per level, with the first child next to its parent.

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
  /** Index of the row. */
  index: number;
  x: number;
  y: number;
}

/** The vertical line next to a parent, which connects its children. */
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

/** Lays out the rows. Every row comes after its parent, so the row right after a parent is its first child. */
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

/** Pixels around the viewport that are rendered as well. */
const OVERSCAN = 120;

export function visibleBoxes({ list }: Boxes, viewport: Viewport): Box[] {
  return list.filter(({ x, y }) => overlaps(viewport, x, x + CARD, y, y + HEIGHT));
}

/** Returns the lines that cross the viewport, including those with both ends outside. */
export function visibleTrunks({ trunks }: Boxes, viewport: Viewport): Trunk[] {
  return trunks.filter(({ parent, children }) => {
    const end = children.at(-1) ?? parent;
    return overlaps(viewport, parent.x + CARD, parent.x + COLUMN, parent.y, end.y + HEIGHT);
  });
}

function overlaps(viewport: Viewport, left: number, right: number, top: number, bottom: number): boolean {
  return (
    right >= viewport.left - OVERSCAN &&
    left <= viewport.left + viewport.width + OVERSCAN &&
    bottom >= viewport.top - OVERSCAN &&
    top <= viewport.top + viewport.height + OVERSCAN
  );
}
