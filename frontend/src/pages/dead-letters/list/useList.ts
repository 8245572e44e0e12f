import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { deadLetters, type Line, type Page, type Status, scopeOf } from "~/api/dead-letters";
import { useConnection, useFallbackInterval } from "~/api/live";
import { type Counted, count, number } from "~/lib/format";
import { useSelection } from "~/lib/selection";
import { useStableList } from "~/lib/stable-list";
import { filtersOf, type Place } from "../parameters";
import { changesOf } from "./changes";

const NONE: ReadonlySet<string> = new Set();

export type DeadLetterList = ReturnType<typeof useList>;

/** The list that the address asks for: its rows, held in their places, and which of them are selected. */
export function useList(place: Place) {
  const filters = useMemo(() => filtersOf(place), [place]);
  const query = useQuery({
    ...deadLetters(filters, place.sort, place.cursor),
    refetchInterval: useInterval(),
  });
  const { data } = query;
  const asked = scopeOf(filters, place.sort, place.cursor);
  const held = useStableList(data?.items, data?.scope ?? asked, idOf);
  const ids = useMemo(() => held.items.map(idOf), [held.items]);
  const selection = useSelection(ids, JSON.stringify(filters));
  const { gone, fresh } = useMemo(
    () => (data ? changesOf(held.items, data, place.sort) : { gone: NONE, fresh: 0 }),
    [data, held.items, place.sort],
  );
  const matching = data && matchingIn(data, place.status);
  useNothingLeft(held.items.length > 0 && gone.size === held.items.length, held.show);

  /** The row next to one, in either direction, that is still there. */
  const neighbour = useCallback(
    (id: string, step: 1 | -1): string | undefined => {
      const at = ids.indexOf(id);
      const ahead = step === 1 ? ids.slice(at + 1) : ids.slice(0, Math.max(0, at)).reverse();
      return ahead.find((one) => !gone.has(one));
    },
    [ids, gone],
  );
  return {
    query,
    filters,
    items: held.items,
    gone,
    fresh,
    /** Shows the list as it is now. */
    update: held.show,
    selection,
    selecting: selection.selected.kind === "everything" || selection.selected.ids.size > 0,
    ids,
    neighbour,
    matching,
    /** An answer to another question is still shown. */
    turning: data !== undefined && data.scope !== asked,
    /** How many have a status, as far as that is known. */
    countOf(status: Status): string | undefined {
      if (status === place.status && matching) return count(matching);
      if (!data?.facets) return undefined;
      const { relation } = data.facets;
      if (status === "any") return count({ value: sum(data.facets.status), relation });
      const found = data.facets.status.find(({ value }) => value === status)?.count ?? 0;
      return relation === "gte" && found > 0 ? `${number(found)}+` : number(found);
    },
  };
}

/** While the stream is away, every so often; and once more soon where what was counted may be older than what is listed. */
function useInterval() {
  const fallback = useFallbackInterval();
  const live = useConnection() === "live";
  return ({
    state: { data, dataUpdatedAt },
  }: {
    state: { data: Page | undefined; dataUpdatedAt: number };
  }) => {
    const counted = data?.facets && new Date(data.facets.as_of).getTime();
    if (!live) return fallback;
    if (counted && dataUpdatedAt - counted > COUNTED_WITHIN) return COUNTED_ANEW_AFTER;
    return data?.unarchived?.count ? ARCHIVED_WITHIN : fallback;
  };
}

const COUNTED_WITHIN = 6_000;
const COUNTED_ANEW_AFTER = 3_000;
/** The broker is asked once in five seconds at most. */
const ARCHIVED_WITHIN = 6_000;

/** Once every row that is held has gone, there is nothing to hold any more. */
function useNothingLeft(gone: boolean, show: () => void): void {
  useEffect(() => {
    if (gone) show();
  }, [gone, show]);
}

/** How many match, also where the list's own count ends: facets count further, though they may be a minute old. */
function matchingIn({ total, facets }: Page, status: Status): Counted | undefined {
  if (!facets || total?.relation !== "gte") return total;
  const found =
    status === "any" ? sum(facets.status) : (facets.status.find(({ value }) => value === status)?.count ?? 0);
  if (found <= total.value) return total;
  return { value: found, relation: facets.relation === "eq" ? "about" : "gte" };
}

function sum(facet: readonly { count: number }[]): number {
  return facet.reduce((all, one) => all + one.count, 0);
}

function idOf(line: Line): string {
  return line.id;
}
