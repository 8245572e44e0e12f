// The lines of a drawing, from top to bottom: what is folded is one line that says how much it is.

import type { Delivery } from "~/api/chains";
import { isSevere, rank } from "./severity";
import type { Item, Tree } from "./tree";

export type Row = MessageRow | DeliveryRow | FoldRow;

interface Placed {
  key: string;
  /** 1 for what begins the chain. */
  level: number;
  /** Which of its siblings it is, from 1, and how many rows they are. */
  position: number;
  siblings: number;
}

export interface MessageRow extends Placed {
  kind: "message";
  item: Item;
  /** Undefined where nothing follows from it. */
  unfolded: boolean | undefined;
}

/** What became of a message in one of several queues. */
export interface DeliveryRow extends Placed {
  kind: "delivery";
  item: Item;
  delivery: Delivery;
}

/** Siblings that are not shown one by one; or, with `hidden` 0, the offer to fold them again. */
export interface FoldRow extends Placed {
  kind: "fold";
  /** Whose children they are; undefined for what hangs from nothing. */
  parent: Item | undefined;
  of: number;
  hidden: number;
  /** How many of the hidden are in which state, the gravest first. */
  states: readonly (readonly [state: string, count: number])[];
}

/** Whether a row is to be marked: of a message with several queues, the one that led on. */
export function isCritical(row: Row): boolean {
  if (row.kind === "fold") return false;
  return row.kind === "delivery" ? row.delivery.queue === row.item.criticalQueue : row.item.critical;
}

export interface Folding {
  /** Whose children are shown one by one however many they are; `ROOTS` for what hangs from nothing. */
  open: ReadonlySet<string>;
  /** Below which nothing is shown. */
  shut: ReadonlySet<string>;
  /** What has to be in sight. */
  shown: string | undefined;
}

/** No id is empty. */
export const ROOTS = "";
/** So many siblings are shown one by one; a few more are not worth folding. */
const KEPT = 40;
const WORTH_FOLDING = 10;

type Ahead = FoldRow | Omit<MessageRow, "unfolded">;

export function rowsOf(tree: Tree, folding: Folding, withDeliveries: boolean): Row[] {
  const inSight = wayTo(tree, folding.shown);
  const rows: Row[] = [];
  const ahead: Ahead[] = siblingsOf(undefined, tree.roots, 0, folding, inSight).reverse();
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (next.kind === "fold") {
      rows.push(next);
      continue;
    }
    const { item } = next;
    const shut = folding.shut.has(item.message.id) && !item.children.some((child) => inSight.has(child));
    const unfolded = item.children.length > 0 ? !shut : undefined;
    const deliveries = withDeliveries && item.message.deliveries.length > 1 ? deliveriesOf(item) : [];
    const below = unfolded ? siblingsOf(item, item.children, deliveries.length, folding, inSight) : [];
    for (const delivery of deliveries) delivery.siblings += below.length;
    rows.push({ ...next, unfolded }, ...deliveries);
    for (const one of below.reverse()) ahead.push(one);
  }
  return rows;
}

export function keyOf(item: Item): string {
  return `m ${item.message.id}`;
}

/** Which row stands for what was chosen, and what of it is chosen by a row. */
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

/** An item and what it follows from. */
function wayTo(tree: Tree, id: string | undefined): ReadonlySet<Item> {
  const way = new Set<Item>();
  let item = id === undefined ? undefined : tree.byId.get(id);
  for (; item !== undefined && !way.has(item); item = item.parent) way.add(item);
  return way;
}

/** The rows of an item's children, behind `before` other rows of it. */
function siblingsOf(
  parent: Item | undefined,
  children: readonly Item[],
  before: number,
  { open }: Folding,
  inSight: ReadonlySet<Item>,
): Ahead[] {
  const id = parent?.message.id ?? ROOTS;
  const isLong = children.length > KEPT + WORTH_FOLDING;
  const kept = isLong && !open.has(id) ? worthSeeing(children, inSight) : new Set(children);
  const level = parent === undefined ? 1 : parent.depth + 2;
  const shown = children.filter((item) => kept.has(item));
  const siblings = before + shown.length + Number(isLong);
  const rows = shown.map((item, index): Ahead => {
    return { kind: "message", key: keyOf(item), level, position: before + index + 1, siblings, item };
  });
  if (!isLong) return rows;
  const hidden = children.filter((item) => !kept.has(item));
  const facts = { kind: "fold", key: `f ${id}`, level, siblings, parent, of: children.length } as const;
  const fold = { ...facts, hidden: hidden.length, states: counted(hidden) };
  // what is unfolded can be long: the way back stands before it
  if (hidden.length > 0) return [...rows, { ...fold, position: siblings }];
  return [{ ...fold, position: before + 1 }, ...rows.map((row) => ({ ...row, position: row.position + 1 }))];
}

/** What was looked up, then what needs attention, then the first of the others. */
function worthSeeing(siblings: readonly Item[], inSight: ReadonlySet<Item>): ReadonlySet<Item> {
  const sought = siblings.filter((item) => item.critical || inSight.has(item));
  const grave = siblings.filter(({ worst }) => isSevere(worst)).slice(0, KEPT / 2);
  const kept = new Set([...sought, ...grave]);
  for (const item of siblings) {
    if (kept.size >= KEPT) break;
    kept.add(item);
  }
  return kept;
}

function counted(items: readonly Item[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { message } of items) counts.set(message.state, (counts.get(message.state) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => rank(one) - rank(other));
}
