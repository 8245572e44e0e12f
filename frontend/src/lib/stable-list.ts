// Lists that never move under the pointer: new items wait until the user asks for them.

import { useCallback, useMemo, useState } from "react";

export interface StableList<T> {
  /** What is shown: the rows of the first answer in their order, each as the latest answer has it. */
  items: readonly T[];
  /** Ids of shown rows that the latest answer no longer has. */
  gone: ReadonlySet<string>;
  /** How many rows of the latest answer are not shown yet. */
  fresh: number;
  /** Shows the latest answer as it is. */
  show(): void;
}

/**
 * Holds the rows of a list in their places while answers change. `scope` names what is listed (filter, order, page):
 * another scope is shown at once, and so is what comes where nothing was, for there no row can move.
 */
export function useStableList<T>(
  latest: readonly T[] | undefined,
  scope: string,
  idOf: (item: T) => string,
): StableList<T> {
  const [held, setHeld] = useState<{ scope: string; items: readonly T[] }>();
  const stands = held?.scope === scope && held.items.length > 0 ? held : undefined;
  if (!stands && latest && latest !== held?.items) setHeld({ scope, items: latest });
  const show = useCallback(() => latest && setHeld({ scope, items: latest }), [latest, scope]);
  return useMemo(() => {
    const items = stands?.items ?? latest ?? [];
    const now = new Map((latest ?? items).map((item) => [idOf(item), item]));
    const shown = new Set(items.map(idOf));
    return {
      items: items.map((item) => now.get(idOf(item)) ?? item),
      gone: new Set([...shown].filter((id) => !now.has(id))),
      fresh: [...now.keys()].filter((id) => !shown.has(id)).length,
      show,
    };
  }, [stands, latest, idOf, show]);
}
