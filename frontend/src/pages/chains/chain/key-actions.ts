// Effects of keys in a tree: move to another row, collapse or expand the row, or activate it.

import { keyOf, type Row } from "./rows";

export type KeyAction = number | "fold" | "act";

const PAGE = 10;

export function keyActionOf(key: string, rows: readonly Row[], index: number): KeyAction | undefined {
  const row = rows[index];
  if (!row) return undefined;
  switch (key) {
    case "ArrowDown":
      return index + 1;
    case "ArrowUp":
      return index - 1;
    case "PageDown":
      return index + PAGE;
    case "PageUp":
      return index - PAGE;
    case "Home":
      return 0;
    case "End":
      return rows.length - 1;
    case "ArrowRight":
      return unfoldedOf(row) === false ? "fold" : index + 1;
    case "ArrowLeft":
      return unfoldedOf(row) ? "fold" : parentOf(row, rows, index);
    case "Enter":
    case " ":
      return "act";
    default:
      return undefined;
  }
}

/** Whether the row is expanded; undefined if it cannot be expanded. */
export function unfoldedOf(row: Row): boolean | undefined {
  if (row.kind === "delivery") return undefined;
  return row.kind === "message" ? row.unfolded : row.hidden === 0;
}

function parentOf(row: Row, rows: readonly Row[], index: number): number {
  const parent = row.kind === "delivery" ? row.item : row.kind === "fold" ? row.parent : row.item.parent;
  const at = parent ? rows.findIndex(({ key }) => key === keyOf(parent)) : -1;
  return at < 0 ? index : at;
}
