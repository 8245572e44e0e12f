// Finds the rows that left the list, as opposed to rows that moved to another page.

import type { Line } from "~/api/dead-letters";

export interface ListChanges {
  /** IDs of shown rows that are no longer in the list. */
  gone: ReadonlySet<string>;
  /** Number of new rows that are not shown yet. */
  fresh: number;
}

export interface Latest {
  items: readonly Line[];
  next: string | null;
  previous: string | null;
}

/** Compares the shown rows with the latest response for the same page. Both are in `sort` order. */
export function changesOf(shown: readonly Line[], latest: Latest, sort: "newest" | "oldest"): ListChanges {
  const present = new Set(latest.items.map(({ id }) => id));
  const known = new Set(shown.map(({ id }) => id));
  const first = latest.items[0];
  const last = latest.items.at(-1);
  // New rows push others off the page, so a missing row is gone only if it would lie between the page's ends.
  const isWithin = (line: Line) =>
    (latest.previous === null || !first || follows(line, first, sort)) &&
    (latest.next === null || !last || follows(last, line, sort));
  const end = shown.at(-1);
  return {
    gone: new Set(shown.filter((line) => !present.has(line.id) && isWithin(line)).map(({ id }) => id)),
    fresh: latest.items.filter(({ id }) => !known.has(id)).filter((line) => !end || follows(end, line, sort))
      .length,
  };
}

/** Whether `line` comes after `before` in the list. */
function follows(line: Line, before: Line, sort: "newest" | "oldest"): boolean {
  const [one, other] = [new Date(line.failed_at).getTime(), new Date(before.failed_at).getTime()];
  return sort === "newest" ? one < other : one > other;
}
