// Row selection: some rows by id, or everything that matches the filter.

import { useCallback, useMemo, useState } from "react";

export type Selected = { kind: "some"; ids: ReadonlySet<string> } | { kind: "everything" };

export interface Selection {
  selected: Selected;
  has(id: string): boolean;
  /** Selects or deselects a row; with `through`, all rows between the last toggled one and this one. */
  toggle(id: string, through?: boolean): void;
  /** Selects all rows shown, or deselects them if all are selected. */
  togglePage(): void;
  selectEverything(): void;
  clear(): void;
}

const EMPTY: Selected = { kind: "some", ids: new Set() };

/** A selection tied to its `scope` (the filter): it survives page changes, and another filter clears it. */
export function useSelection(shown: readonly string[], scope: string): Selection {
  const [stored, setStored] = useState<{ scope: string; selected: Selected; last?: string }>({
    scope,
    selected: EMPTY,
  });
  const { selected, last } = stored.scope === scope ? stored : { selected: EMPTY, last: undefined };

  const update = useCallback(
    (next: Selected, touched?: string) =>
      setStored({ scope, selected: next, ...(touched ? { last: touched } : {}) }),
    [scope],
  );
  return useMemo(() => {
    const ids = selected.kind === "some" ? selected.ids : new Set(shown);
    const has = (id: string) => selected.kind === "everything" || ids.has(id);
    return {
      selected,
      has,
      toggle(id, through = false) {
        const wanted = !has(id);
        const next = new Set(ids);
        for (const row of through ? between(shown, last, id) : [id]) {
          if (wanted) next.add(row);
          else next.delete(row);
        }
        update({ kind: "some", ids: next }, id);
      },
      togglePage() {
        const next = new Set(ids);
        const all = shown.every((id) => next.has(id));
        for (const id of shown) {
          if (all) next.delete(id);
          else next.add(id);
        }
        update({ kind: "some", ids: all && selected.kind === "everything" ? new Set() : next });
      },
      selectEverything: () => update({ kind: "everything" }),
      clear: () => update(EMPTY),
    };
  }, [selected, last, shown, update]);
}

function between(shown: readonly string[], from: string | undefined, to: string): readonly string[] {
  const [start, end] = [shown.indexOf(from ?? to), shown.indexOf(to)];
  if (start < 0 || end < 0) return [to];
  return shown.slice(Math.min(start, end), Math.max(start, end) + 1);
}

/** Number of selected rows; `matching` is the number that match the filter, if known. */
export function selectedCount(selected: Selected, matching: number | undefined): number | undefined {
  return selected.kind === "some" ? selected.ids.size : matching;
}
