// What became of the rows that are shown, told apart from those that only slid to another page.

import type { Line } from "~/api/dead-letters";

export interface ListChanges {
  /** Shown rows that are in the list no more. */
  gone: ReadonlySet<string>;
  /** How many rows came that are not shown yet. */
  fresh: number;
}

export interface Latest {
  items: readonly Line[];
  next: string | null;
  previous: string | null;
}

/** Rows in `sort` order: those that were shown, and what the same page holds now. */
export function changesOf(shown: readonly Line[], latest: Latest, sort: "newest" | "oldest"): ListChanges {
  const present = new Set(latest.items.map(({ id }) => id));
  const known = new Set(shown.map(({ id }) => id));
  const first = latest.items[0];
  const last = latest.items.at(-1);
  // beyond the page's ends it is unknown: new rows push others out of it
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

/** Whether one line comes after another in the list. */
function follows(line: Line, before: Line, sort: "newest" | "oldest"): boolean {
  const [one, other] = [new Date(line.failed_at).getTime(), new Date(before.failed_at).getTime()];
  return sort === "newest" ? one < other : one > other;
}
