import { useCallback, useRef, useState } from "react";
import { type Counted, count } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/dead-letters";
import { AsOf, Button, Checkbox, Loaded, Loading, Pager } from "~/ui";
import { ListHeader } from "../ListHeader";
import type { Place } from "../parameters";
import { EmptyList } from "./EmptyList";
import styles from "./List.module.css";
import { Row, rowOf } from "./Row";
import { SelectionBar } from "./SelectionBar";
import type { DeadLetterList } from "./useList";

export interface ListProps {
  list: DeadLetterList;
  /** The dead letter in the side panel. */
  open: string | undefined;
  place: Place;
  onOpen(id: string | undefined): void;
  onPageChange(cursor: string): void;
}

/** Dead letters one by one, and what can be done with those that are selected. */
export function List({ list, open, place, onOpen, onPageChange }: ListProps) {
  const { query, selection, ids, items, gone } = list;
  const toggle = useStable(selection.toggle);
  useWalking(list, open, onOpen);
  return (
    <section aria-label={texts.title} aria-busy={list.turning}>
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(page) => (
          <div className={styles.list} data-turning={list.turning || undefined}>
            <Above list={list} at={query.dataUpdatedAt} />
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
            <div className={styles.turn}>
              <Pager
                shown={ids.length}
                next={page.next}
                previous={page.previous}
                onPageChange={onPageChange}
                busy={list.turning}
              />
            </div>
            <SelectionBar list={list} status={place.status} />
          </div>
        )}
      </Loaded>
    </section>
  );
}

function Above({ list, at }: { list: DeadLetterList; at: number }) {
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
      <span className={styles.total}>{matching && words(matching)}</span>
      {(fresh > 0 || gone.size > 0) && (
        <Button icon="operations" onClick={update}>
          {changeOf(fresh, gone.size)}
        </Button>
      )}
    </ListHeader>
  );
}

function words(matching: Counted): string {
  const noun = matching.value === 1 && matching.relation === "eq" ? texts.deadLetter : texts.deadLetters;
  return `${count(matching)} ${noun}`;
}

function changeOf(fresh: number, gone: number): string {
  const parts = [fresh > 0 && texts.newCount(fresh), gone > 0 && texts.resolvedCount(gone)].filter(Boolean);
  return texts.refresh(parts.join(", "));
}

/** `j` and `k` move from row to row; while one is open they open the next one. */
function useWalking(
  { ids, gone, selection }: DeadLetterList,
  open: string | undefined,
  onOpen: ListProps["onOpen"],
) {
  const [last, setLast] = useState<string>();
  function at(): string | undefined {
    const focused = document.activeElement
      ?.closest<HTMLElement>("li")
      ?.querySelector<HTMLElement>("[data-letter]");
    return focused?.dataset.letter ?? open ?? last;
  }
  function walk(step: 1 | -1) {
    const from = at();
    const index = from === undefined ? -1 : ids.indexOf(from);
    let next = index < 0 && step < 0 ? ids.length - 1 : index + step;
    while (open !== undefined && gone.has(ids[next] ?? "")) next += step;
    const to = ids[next];
    if (to === undefined) return;
    setLast(to);
    rowOf(to)?.focus();
    if (open !== undefined) onOpen(to);
  }
  function mark(through: boolean) {
    const id = at();
    if (id !== undefined && ids.includes(id)) selection.toggle(id, through);
  }
  useShortcuts(texts.title, [
    { keys: "j", label: texts.nextRow, run: () => walk(1) },
    { keys: "k", label: texts.previousRow, run: () => walk(-1) },
    { keys: "x", label: texts.selectRow, run: () => mark(false) },
    { keys: "X", label: texts.selectRange, run: () => mark(true) },
  ]);
}

/** The same function for as long as the list is there, so that rows render again only when they change. */
function useStable<A extends unknown[]>(act: (...given: A) => void): (...given: A) => void {
  const latest = useRef(act);
  latest.current = act;
  return useCallback((...given: A) => latest.current(...given), []);
}
