// The keyboard cursor of a chain view. Arrow keys work as in any tree view; `j` and `k` work wherever focus is.

import {
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/chains";
import { keyActionOf, unfoldedOf } from "./key-actions";
import { idOf, isCritical, type Row } from "./rows";
import type { ChainHandlers } from "./view";

export interface Cursor {
  /** Index of the row that keys act on. */
  index: number;
  /** Props of the element that has focus on behalf of its rows. */
  tree: {
    role: "tree";
    "aria-label": string;
    tabIndex: 0;
    ref: RefObject<HTMLDivElement | null>;
    "aria-activedescendant": string | undefined;
    onKeyDown(event: KeyboardEvent): void;
    onClick(event: MouseEvent): void;
  };
  /** Prefix of the element IDs of rows. The row's index follows. */
  prefix: string;
}

export interface RowProps {
  id: string;
  role: "treeitem";
  "aria-level": number;
  "aria-posinset": number;
  "aria-setsize": number;
  "aria-expanded": boolean | undefined;
  "aria-selected": boolean | undefined;
  "data-row": number;
  "data-cursor": true | undefined;
  "data-selected": true | undefined;
  "data-critical": true | undefined;
}

export function useCursor(
  label: string,
  rows: readonly Row[],
  handlers: ChainHandlers,
  reveal: (index: number) => void,
): Cursor {
  const prefix = useId();
  const tree = useRef<HTMLDivElement>(null);
  const indexes = useMemo(() => new Map(rows.map(({ key }, index) => [key, index])), [rows]);
  const [key, setKey] = useState<string>();
  const { selected, choose, toggle } = handlers;
  const index = indexes.get(key ?? "") ?? indexes.get(`m ${selected}`) ?? 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the cursor follows a selection made elsewhere, for example by going back
  useEffect(() => {
    if (selected === undefined || indexes.size === 0) return;
    const row = rows[index];
    if (row && idOf(row) === selected) return;
    setKey(`m ${selected}`);
    reveal(indexes.get(`m ${selected}`) ?? index);
  }, [selected, indexes.size === 0]);

  function moveTo(to: number) {
    const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    if (!row) return;
    setKey(row.key);
    reveal(indexes.get(row.key) ?? 0);
    if (selected !== undefined && row.kind !== "fold") choose(idOf(row), true);
  }
  function activate(row: Row) {
    if (row.kind === "fold") toggle(row);
    else choose(idOf(row));
  }
  function step(by: number) {
    tree.current?.focus({ preventScroll: true });
    moveTo(key === undefined && selected === undefined ? 0 : index + by);
  }
  useShortcuts(texts.chain, [
    { keys: "j", label: texts.nextMessage, run: () => step(1) },
    { keys: "k", label: texts.previousMessage, run: () => step(-1) },
  ]);

  function onKeyDown(event: KeyboardEvent) {
    const row = rows[index];
    if (!row || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const action = keyActionOf(event.key, rows, index);
    if (action === undefined) return;
    event.preventDefault();
    if (action === "act") activate(row);
    else if (action === "fold") toggle(row);
    else moveTo(action);
  }
  function onClick({ target }: MouseEvent) {
    const element = target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null;
    const row = rows[Number(element?.dataset.row)];
    if (!row || !(target instanceof Element)) return;
    setKey(row.key);
    if (target.closest("[data-fold]")) toggle(row);
    else activate(row);
  }
  return {
    index,
    prefix,
    tree: {
      role: "tree",
      "aria-label": label,
      tabIndex: 0,
      ref: tree,
      "aria-activedescendant": rows.length > 0 ? `${prefix}${index}` : undefined,
      onKeyDown,
      onClick,
    },
  };
}

/** Returns the props of a row's element, for keyboard and screen readers. */
export function rowProps(
  row: Row,
  {
    prefix,
    index,
    isCursor,
    isSelected,
  }: { prefix: string; index: number; isCursor: boolean; isSelected: boolean },
): RowProps {
  return {
    id: `${prefix}${index}`,
    role: "treeitem",
    "aria-level": row.level,
    "aria-posinset": row.position,
    "aria-setsize": row.siblings,
    "aria-expanded": unfoldedOf(row),
    "aria-selected": row.kind === "fold" ? undefined : isSelected,
    "data-row": index,
    "data-cursor": isCursor || undefined,
    "data-selected": isSelected || undefined,
    "data-critical": isCritical(row) || undefined,
  };
}
