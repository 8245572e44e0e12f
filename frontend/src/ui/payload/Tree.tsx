import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { JsonNode } from "~/lib/json";
import * as texts from "~/texts/payload";
import { Icon } from "../icons";
import styles from "./payload.module.css";
import { INITIAL_CHILDREN, initiallyOpen, type More, type Row, rowsOf, sizeOf } from "./tree";

/** A JSON document as a tree. Arrow keys move, expand and collapse. */
export function Tree({ root, label }: { root: JsonNode; label: string }) {
  const [open, setOpen] = useState(() => initiallyOpen(root));
  const [limits, setLimits] = useState<ReadonlyMap<string, number>>(new Map());
  const [current, setCurrent] = useState("0");
  const rows = useMemo(() => rowsOf(root, open, limits), [root, open, limits]);
  const list = useRef<HTMLDivElement>(null);

  function toggle(path: string, wanted = !open.has(path)) {
    const next = new Set(open);
    if (wanted) next.add(path);
    else next.delete(path);
    setOpen(next);
  }
  function goTo(path: string | undefined) {
    if (path === undefined) return;
    setCurrent(path);
    list.current?.querySelector<HTMLElement>(`[data-path="${path}"]`)?.focus();
  }
  function onKeyDown(event: KeyboardEvent) {
    const shown = rows.filter((row): row is Row => !("more" in row));
    const at = shown.findIndex(({ path }) => path === current);
    const row = shown[at];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actionOf(event.key, row, shown, at);
    if (!action) return;
    event.preventDefault();
    if (action.toggle !== undefined) toggle(row.path, action.toggle);
    goTo(action.to);
  }
  return (
    <div
      ref={list}
      role="tree"
      aria-label={label}
      className={styles.tree}
      onKeyDown={onKeyDown}
      tabIndex={-1}
    >
      {rows.map((row) =>
        "more" in row ? (
          <ShowMore
            key={`${row.path}+`}
            row={row}
            onMore={() =>
              setLimits(new Map(limits).set(row.path, (limits.get(row.path) ?? INITIAL_CHILDREN) + 500))
            }
          />
        ) : (
          <Line
            key={row.path}
            row={row}
            current={row.path === current}
            onToggle={() => {
              setCurrent(row.path);
              if (sizeOf(row.node) > 0) toggle(row.path);
            }}
          />
        ),
      )}
    </div>
  );
}

interface KeyAction {
  to?: string | undefined;
  toggle?: boolean;
}

function actionOf(key: string, row: Row, shown: readonly Row[], at: number): KeyAction | undefined {
  const inside = sizeOf(row.node) > 0;
  if (key === "ArrowDown") return { to: shown[at + 1]?.path };
  if (key === "ArrowUp") return { to: shown[at - 1]?.path };
  if (key === "Home") return { to: shown[0]?.path };
  if (key === "End") return { to: shown.at(-1)?.path };
  if (key === "ArrowRight") return row.open ? { to: shown[at + 1]?.path } : { toggle: inside };
  if (key === "ArrowLeft") {
    return row.open && inside ? { toggle: false } : { to: row.path.replace(/\/\d+$/, "") };
  }
  return (key === "Enter" || key === " ") && inside ? { toggle: !row.open } : undefined;
}

function Line({ row, current, onToggle }: { row: Row; current: boolean; onToggle(): void }) {
  const { path, depth, name, node, position, open } = row;
  const inside = sizeOf(node);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
    <div
      role="treeitem"
      tabIndex={current ? 0 : -1}
      data-path={path}
      className={styles.node}
      aria-level={depth + 1}
      aria-setsize={position[0]}
      aria-posinset={position[1]}
      aria-selected={current}
      aria-expanded={inside > 0 ? open : undefined}
      style={{ paddingInlineStart: `${indent(depth)}px` }}
      onClick={onToggle}
    >
      <span className={styles.fold}>{inside > 0 && <Icon name={open ? "down" : "right"} />}</span>
      {name !== undefined && <span className={styles.key}>{name}</span>}
      <Value node={node} />
    </div>
  );
}

/** Indentation in pixels, limited to 20 levels so that deep nodes stay visible. */
function indent(depth: number): number {
  return Math.min(depth, 20) * 16;
}

function Value({ node }: { node: JsonNode }) {
  switch (node.kind) {
    case "object":
      return <span className={styles.folded}>{texts.members(node.members.length)}</span>;
    case "array":
      return <span className={styles.folded}>{texts.elements(node.items.length)}</span>;
    case "string":
      return <LongText text={node.value} />;
    default:
      return (
        <span className={styles.value} data-kind={node.kind}>
          {node.source}
        </span>
      );
  }
}

const INITIAL_TEXT_LENGTH = 2_000;

function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  if (text === "***") {
    return (
      <span className={styles.masked}>
        <Icon name="lost" /> {texts.masked}
      </span>
    );
  }
  const cut = !whole && text.length > INITIAL_TEXT_LENGTH;
  return (
    <span className={styles.value} data-kind="string">
      {`"${cut ? text.slice(0, INITIAL_TEXT_LENGTH) : text}${cut ? "…" : '"'}`}
      {cut && (
        <button
          type="button"
          tabIndex={-1}
          className={styles.more}
          onClick={(event) => {
            event.stopPropagation();
            setWhole(true);
          }}
        >
          {texts.showCharacters(text.length)}
        </button>
      )}
    </span>
  );
}

function ShowMore({ row, onMore }: { row: More; onMore(): void }) {
  return (
    <div role="none" style={{ paddingInlineStart: `${indent(row.depth) + 20}px` }}>
      <button type="button" className={styles.more} onClick={onMore}>
        {texts.showMoreItems(Math.min(500, row.more), row.more)}
      </button>
    </div>
  );
}
