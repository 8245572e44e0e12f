// Which rows are selected: some, by their ids, or everything that the filter matches.

import { useCallback, useMemo, useState } from "react";

export type Selected = { kind: "some"; ids: ReadonlySet<string> } | { kind: "everything" };

export interface Selection {
  selected: Selected;
  has(id: string): boolean;
  /** Selects or leaves out one row; with `through`, all rows between the one touched last and this one. */
  toggle(id: string, through?: boolean): void;
  /** Selects all rows shown, or none when all are. */
  togglePage(): void;
  selectEverything(): void;
  clear(): void;
}

const NOTHING: Selected = { kind: "some", ids: new Set() };

/** A selection that lasts as long as its `scope` (the filter): turning pages keeps it, another filter clears it. */
export function useSelection(shown: readonly string[], scope: string): Selection {
  const [kept, setKept] = useState<{ scope: string; selected: Selected; last?: string }>({
    scope,
    selected: NOTHING,
  });
  const { selected, last } = kept.scope === scope ? kept : { selected: NOTHING, last: undefined };

  const put = useCallback(
    (next: Selected, touched?: string) =>
      setKept({ scope, selected: next, ...(touched ? { last: touched } : {}) }),
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
        for (const one of through ? between(shown, last, id) : [id]) {
          if (wanted) next.add(one);
          else next.delete(one);
        }
        put({ kind: "some", ids: next }, id);
      },
      togglePage() {
        const next = new Set(ids);
        const all = shown.every((id) => next.has(id));
        for (const id of shown) {
          if (all) next.delete(id);
          else next.add(id);
        }
        put({ kind: "some", ids: all && selected.kind === "everything" ? new Set() : next });
      },
      selectEverything: () => put({ kind: "everything" }),
      clear: () => put(NOTHING),
    };
  }, [selected, last, shown, put]);
}

function between(shown: readonly string[], from: string | undefined, to: string): readonly string[] {
  const [start, end] = [shown.indexOf(from ?? to), shown.indexOf(to)];
  if (start < 0 || end < 0) return [to];
  return shown.slice(Math.min(start, end), Math.max(start, end) + 1);
}

/** How many rows are selected; `matching` is what the filter matches, where that is known. */
export function howMany(selected: Selected, matching: number | undefined): number | undefined {
  return selected.kind === "some" ? selected.ids.size : matching;
}
