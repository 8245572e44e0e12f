// A chain, ready to be drawn: put together once for each answer, and folded anew for each change of what is open.

import { useMemo } from "react";
import type { Chain } from "~/api/chains";
import { extentOf, type Lanes, lanesOf, nowFor, type Span } from "./lanes";
import { type Folding, type Row, rowsOf } from "./rows";
import { type Item, type Tree, treeOf } from "./tree";

export interface Drawn {
  chain: Chain;
  tree: Tree;
  lanes: ReadonlyMap<Item, Lanes>;
  /** Undefined where no time is known. */
  extent: Span | undefined;
}

/** What a view needs beside the chain: what is chosen and folded, and how that changes. */
export interface Handled {
  folding: Folding;
  selected: string | undefined;
  /** By keyboard the entry of the browser's history is replaced: nobody goes back step by step. */
  choose(id: string | undefined, replace?: boolean): void;
  toggle(row: Row): void;
}

export function drawnOf(chain: Chain, readAt: number): Drawn {
  const tree = treeOf(chain);
  const now = nowFor(chain, readAt);
  const lanes = new Map(tree.items.map((item) => [item, lanesOf(item.message, now)]));
  return { chain, tree, lanes, extent: extentOf(lanes.values()) };
}

export function useDrawn(chain: Chain, readAt: number): Drawn {
  return useMemo(() => drawnOf(chain, readAt), [chain, readAt]);
}

export function useRows(tree: Tree, folding: Folding, withLegs: boolean): readonly Row[] {
  return useMemo(() => rowsOf(tree, folding, withLegs), [tree, folding, withLegs]);
}
