import { useCallback, useRef, useState } from "react";
import { type Counted, count } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/dead-letters";
import { AsOf, Button, Checkbox, Loaded, Loading, Pager } from "~/ui";
import { ListHeader } from "../ListHeader";
import type { UrlState } from "../parameters";
import { EmptyList } from "./EmptyList";
import styles from "./List.module.css";
import { Row, rowOf } from "./Row";
import { SelectionBar } from "./SelectionBar";
import type { DeadLetterList } from "./useList";

export interface ListProps {
  list: DeadLetterList;
  /** The dead letter in the side panel. */
  open: string | undefined;
  urlState: UrlState;
  onOpen(id: string | undefined): void;
  onPageChange(cursor: string): void;
}

/** The list of dead letters, with actions on the selection. */
export function List({ list, open, urlState, onOpen, onPageChange }: ListProps) {
  const { query, selection, ids, items, gone } = list;
  const toggle = useStableCallback(selection.toggle);
  useRowShortcuts(list, open, onOpen);
  return (
    <section aria-label={texts.title} aria-busy={list.stale}>
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(page) => (
          <div className={styles.list} data-stale={list.stale || undefined}>
            <ListSummary list={list} at={query.dataUpdatedAt} />
            {ids.length === 0 && page.items.length === 0 ? (
              <EmptyList filters={list.filters} />
            ) : (
              <ul className={styles.rows}>
                {items.map((line) => (
                  <Row
                    key={line.id}
                    line={line}
                    selected={selection.has(line.id)}
                    open={line.id === open}
                    gone={gone.has(line.id)}
                    onToggle={toggle}
                  />
                ))}
              </ul>
            )}
            <div className={styles.pager}>
              <Pager
                shown={ids.length}
                next={page.next}
                previous={page.previous}
                onPageChange={onPageChange}
                busy={list.stale}
              />
            </div>
            <SelectionBar list={list} status={urlState.status} />
          </div>
        )}
      </Loaded>
    </section>
  );
}

function ListSummary({ list, at }: { list: DeadLetterList; at: number }) {
  const { ids, selection, gone, fresh, matching, update } = list;
  const selected = ids.filter(selection.has).length;
  return (
    <ListHeader age={<AsOf at={at} />}>
      <Checkbox
        label={texts.selectPage}
        hideLabel
        checked={selected > 0 && selected === ids.length}
        indeterminate={selected > 0 && selected < ids.length}
        disabled={ids.length === 0}
        onChange={selection.togglePage}
      />
      <span className={styles.total}>{matching && countText(matching)}</span>
      {(fresh > 0 || gone.size > 0) && (
        <Button icon="operations" onClick={update}>
          {changesText(fresh, gone.size)}
        </Button>
      )}
    </ListHeader>
  );
}

function countText(matching: Counted): string {
  const noun = matching.value === 1 && matching.relation === "eq" ? texts.deadLetter : texts.deadLetters;
  return `${count(matching)} ${noun}`;
}

function changesText(fresh: number, gone: number): string {
  const parts = [fresh > 0 && texts.newCount(fresh), gone > 0 && texts.resolvedCount(gone)].filter(Boolean);
  return texts.refresh(parts.join(", "));
}

/** Moves between rows with `j` and `k`. While a dead letter is open, this opens the next one. */
function useRowShortcuts(
  { ids, gone, selection }: DeadLetterList,
  open: string | undefined,
  onOpen: ListProps["onOpen"],
) {
  const [last, setLast] = useState<string>();
  function currentId(): string | undefined {
    const focused = document.activeElement
      ?.closest<HTMLElement>("li")
      ?.querySelector<HTMLElement>("[data-dead-letter]");
    return focused?.dataset.deadLetter ?? open ?? last;
  }
  function step(by: 1 | -1) {
    const from = currentId();
    const index = from === undefined ? -1 : ids.indexOf(from);
    let next = index < 0 && by < 0 ? ids.length - 1 : index + by;
    while (open !== undefined && gone.has(ids[next] ?? "")) next += by;
    const to = ids[next];
    if (to === undefined) return;
    setLast(to);
    rowOf(to)?.focus();
    if (open !== undefined) onOpen(to);
  }
  function toggleSelection(through: boolean) {
    const id = currentId();
    if (id !== undefined && ids.includes(id)) selection.toggle(id, through);
  }
  useShortcuts(texts.title, [
    { keys: "j", label: texts.nextRow, run: () => step(1) },
    { keys: "k", label: texts.previousRow, run: () => step(-1) },
    { keys: "x", label: texts.selectRow, run: () => toggleSelection(false) },
    { keys: "X", label: texts.selectRange, run: () => toggleSelection(true) },
  ]);
}

/** Returns a function that never changes, so that memoized rows do not render again. */
function useStableCallback<A extends unknown[]>(act: (...given: A) => void): (...given: A) => void {
  const latest = useRef(act);
  latest.current = act;
  return useCallback((...given: A) => latest.current(...given), []);
}
