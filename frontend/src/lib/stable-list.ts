// Lists whose rows never move under the pointer: new items appear on request.

import { useCallback, useMemo, useState } from "react";

export interface StableList<T> {
  /** Rows to show: those of the first response in their order, with the data of the latest one. */
  items: readonly T[];
  /** Ids of shown rows that are missing from the latest response. */
  gone: ReadonlySet<string>;
  /** Number of rows of the latest response that are not shown yet. */
  fresh: number;
  /** Shows the latest response. */
  show(): void;
}

/**
 * Keeps the rows of a list in place while responses change. `scope` identifies the list (filter, order, page): another
 * scope is shown at once, and so are new rows of an empty list, because no row can move there.
 */
export function useStableList<T>(
  latest: readonly T[] | undefined,
  scope: string,
  idOf: (item: T) => string,
): StableList<T> {
  const [held, setHeld] = useState<{ scope: string; items: readonly T[] }>();
  const current = held?.scope === scope && held.items.length > 0 ? held : undefined;
  if (!current && latest && latest !== held?.items) setHeld({ scope, items: latest });
  const show = useCallback(() => latest && setHeld({ scope, items: latest }), [latest, scope]);
  return useMemo(() => {
    const items = current?.items ?? latest ?? [];
    const now = new Map((latest ?? items).map((item) => [idOf(item), item]));
    const shown = new Set(items.map(idOf));
    return {
      items: items.map((item) => now.get(idOf(item)) ?? item),
      gone: new Set([...shown].filter((id) => !now.has(id))),
      fresh: [...now.keys()].filter((id) => !shown.has(id)).length,
      show,
    };
  }, [current, latest, idOf, show]);
}
