// The rows of a chain view, from top to bottom. Collapsed siblings are one row that summarizes them.

import type { Delivery } from "~/api/chains";
import { isSevere, rank } from "./severity";
import type { Item, Tree } from "./tree";

export type Row = MessageRow | DeliveryRow | FoldRow;

interface RowPosition {
  key: string;
  /** Depth in the tree, from 1. */
  level: number;
  /** Position among its siblings, from 1, and their number. */
  position: number;
  siblings: number;
}

export interface MessageRow extends RowPosition {
  kind: "message";
  item: Item;
  /** Undefined for a message without effects. */
  unfolded: boolean | undefined;
}

/** The delivery of a message to one of several queues. */
export interface DeliveryRow extends RowPosition {
  kind: "delivery";
  item: Item;
  delivery: Delivery;
}

/** Collapsed siblings; with `hidden` 0, the row that collapses them again. */
export interface FoldRow extends RowPosition {
  kind: "fold";
  /** Their parent; undefined for messages without a known cause. */
  parent: Item | undefined;
  of: number;
  hidden: number;
  /** Number of hidden messages by state, most severe first. */
  states: readonly (readonly [state: string, count: number])[];
}

/** Whether a row is on the critical path. For a message with several queues, that is one of its queues. */
export function isCritical(row: Row): boolean {
  if (row.kind === "fold") return false;
  return row.kind === "delivery" ? row.delivery.queue === row.item.criticalQueue : row.item.critical;
}

export interface Folding {
  /** IDs of the messages whose children are all shown; `ROOTS` for messages without a known cause. */
  open: ReadonlySet<string>;
  /** IDs of the collapsed messages. */
  shut: ReadonlySet<string>;
  /** ID of the message that has to be visible. */
  shown: string | undefined;
}

/** Stands for the parent of the roots. Never a message ID, because those are not empty. */
export const ROOTS = "";
/** Siblings shown when the others are collapsed. */
const KEPT = 40;
/** The minimum number of siblings to collapse. */
const MIN_FOLDED = 10;

type PendingRow = FoldRow | Omit<MessageRow, "unfolded">;

export function rowsOf(tree: Tree, folding: Folding, withDeliveries: boolean): Row[] {
  const visible = pathTo(tree, folding.shown);
  const rows: Row[] = [];
  const pending: PendingRow[] = siblingsOf(undefined, tree.roots, 0, folding, visible).reverse();
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next.kind === "fold") {
      rows.push(next);
      continue;
    }
    const { item } = next;
    const shut = folding.shut.has(item.message.id) && !item.children.some((child) => visible.has(child));
    const unfolded = item.children.length > 0 ? !shut : undefined;
    const deliveries = withDeliveries && item.message.deliveries.length > 1 ? deliveriesOf(item) : [];
    const below = unfolded ? siblingsOf(item, item.children, deliveries.length, folding, visible) : [];
    for (const delivery of deliveries) delivery.siblings += below.length;
    rows.push({ ...next, unfolded }, ...deliveries);
    for (const one of below.reverse()) pending.push(one);
  }
  return rows;
}

export function keyOf(item: Item): string {
  return `m ${item.message.id}`;
}

/** Returns the ID of the message that selecting the row selects. */
export function idOf(row: Row): string | undefined {
  return row.kind === "fold" ? undefined : row.item.message.id;
}

function deliveriesOf(item: Item): DeliveryRow[] {
  const { deliveries, id } = item.message;
  return deliveries.map((delivery, index) => ({
    kind: "delivery",
    key: `q ${index} ${id}`,
    level: item.depth + 2,
    position: index + 1,
    siblings: deliveries.length,
    item,
    delivery,
  }));
}

/** Returns an item and its ancestors. */
function pathTo(tree: Tree, id: string | undefined): ReadonlySet<Item> {
  const path = new Set<Item>();
  let item = id === undefined ? undefined : tree.byId.get(id);
  for (; item !== undefined && !path.has(item); item = item.parent) path.add(item);
  return path;
}

/** Returns the rows of an item's children, which follow `before` other rows of the item. */
function siblingsOf(
  parent: Item | undefined,
  children: readonly Item[],
  before: number,
  { open }: Folding,
  visible: ReadonlySet<Item>,
): PendingRow[] {
  const id = parent?.message.id ?? ROOTS;
  const isLong = children.length > KEPT + MIN_FOLDED;
  const kept = isLong && !open.has(id) ? keptSiblings(children, visible) : new Set(children);
  const level = parent === undefined ? 1 : parent.depth + 2;
  const shown = children.filter((item) => kept.has(item));
  const siblings = before + shown.length + Number(isLong);
  const rows = shown.map((item, index): PendingRow => {
    return { kind: "message", key: keyOf(item), level, position: before + index + 1, siblings, item };
  });
  if (!isLong) return rows;
  const hidden = children.filter((item) => !kept.has(item));
  const facts = { kind: "fold", key: `f ${id}`, level, siblings, parent, of: children.length } as const;
  const fold = { ...facts, hidden: hidden.length, states: countsByState(hidden) };
  // An expanded list can be long, so the row that collapses it comes first.
  if (hidden.length > 0) return [...rows, { ...fold, position: siblings }];
  return [{ ...fold, position: before + 1 }, ...rows.map((row) => ({ ...row, position: row.position + 1 }))];
}

/** Returns the siblings to show: critical or selected ones, then those that need attention, then the first of the others. */
function keptSiblings(siblings: readonly Item[], visible: ReadonlySet<Item>): ReadonlySet<Item> {
  const required = siblings.filter((item) => item.critical || visible.has(item));
  const severe = siblings.filter(({ worst }) => isSevere(worst)).slice(0, KEPT / 2);
  const kept = new Set([...required, ...severe]);
  for (const item of siblings) {
    if (kept.size >= KEPT) break;
    kept.add(item);
  }
  return kept;
}

function countsByState(items: readonly Item[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { message } of items) counts.set(message.state, (counts.get(message.state) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => rank(one) - rank(other));
}
