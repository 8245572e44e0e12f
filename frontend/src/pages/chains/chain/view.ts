// The data of the chain views: computed once per response, with rows that depend on what is collapsed.

import { useMemo } from "react";
import type { Chain } from "~/api/chains";
import { extentOf, type Lanes, lanesOf, nowFor, type Span } from "./lanes";
import { type Folding, type Row, rowsOf } from "./rows";
import { type Item, type Tree, treeOf } from "./tree";

export interface ChainView {
  chain: Chain;
  tree: Tree;
  lanes: ReadonlyMap<Item, Lanes>;
  /** Undefined without times. */
  extent: Span | undefined;
}

/** Selection and collapsed messages of a view, and how to change them. */
export interface ChainHandlers {
  folding: Folding;
  selected: string | undefined;
  /** With `replace`, as for keyboard steps, the browser history gets no new entry, so the back button skips single steps. */
  choose(id: string | undefined, replace?: boolean): void;
  toggle(row: Row): void;
}

export function chainViewOf(chain: Chain, readAt: number): ChainView {
  const tree = treeOf(chain);
  const now = nowFor(chain, readAt);
  const lanes = new Map(tree.items.map((item) => [item, lanesOf(item.message, now)]));
  return { chain, tree, lanes, extent: extentOf(lanes.values()) };
}

export function useChainView(chain: Chain, readAt: number): ChainView {
  return useMemo(() => chainViewOf(chain, readAt), [chain, readAt]);
}

export function useRows(tree: Tree, folding: Folding, withDeliveries: boolean): readonly Row[] {
  return useMemo(() => rowsOf(tree, folding, withDeliveries), [tree, folding, withDeliveries]);
}
