import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { deadLetters, type Filters, type Line, type Page, type Status, scopeOf } from "~/api/dead-letters";
import { useConnection, useFallbackInterval } from "~/api/live";
import { type Counted, count, number } from "~/lib/format";
import { useSelection } from "~/lib/selection";
import { useStableList } from "~/lib/stable-list";
import { filtersOf, type UrlState } from "../parameters";
import { changesOf } from "./changes";

const NONE: ReadonlySet<string> = new Set();

export type DeadLetterList = ReturnType<typeof useList>;

/** The list for the URL parameters: rows in stable positions, and the selection. */
export function useList(urlState: UrlState) {
  const filters = useMemo(() => filtersOf(urlState), [urlState]);
  const query = useQuery({
    ...deadLetters(filters, urlState.sort, urlState.cursor),
    refetchInterval: useInterval(),
  });
  const { data } = query;
  const requestedScope = scopeOf(filters, urlState.sort, urlState.cursor);
  const stable = useStableList(data?.items, data?.scope ?? requestedScope, idOf);
  const ids = useMemo(() => stable.items.map(idOf), [stable.items]);
  const selection = useSelection(ids, JSON.stringify(filters));
  const { gone, fresh } = useMemo(
    () => (data ? changesOf(stable.items, data, urlState.sort) : { gone: NONE, fresh: 0 }),
    [data, stable.items, urlState.sort],
  );
  /** Whether the rows of the previous page or filter are still shown. Their counts are not shown as those of this one. */
  const stale = data !== undefined && data.scope !== requestedScope;
  const matching = data && !stale ? matchingIn(data, urlState.status) : undefined;
  const facets = data && facetScope(data.filters) === facetScope(filters) ? data.facets : undefined;
  useShowWhenAllGone(stable.items.length > 0 && gone.size === stable.items.length, stable.show);

  /** Returns the ID of the next row, in either direction, that is still in the list. */
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
    items: stable.items,
    gone,
    fresh,
    /** Shows the latest response. */
    update: stable.show,
    selection,
    selecting: selection.selected.kind === "everything" || selection.selected.ids.size > 0,
    ids,
    neighbour,
    matching,
    stale,
    /** Returns the count of a status, if known. */
    countOf(status: Status): string | undefined {
      if (status === urlState.status && matching) return count(matching);
      if (!facets) return undefined;
      const { relation } = facets;
      if (status === "any") return count({ value: sum(facets.status), relation });
      const found = facets.status.find(({ value }) => value === status)?.count ?? 0;
      return relation === "gte" && found > 0 ? `${number(found)}+` : number(found);
    },
  };
}

/** Returns the refetch interval: a fallback without live updates, and a short one if counts may be older than the list. */
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
    if (counted && dataUpdatedAt - counted > MAX_COUNT_AGE) return RECOUNT_AFTER;
    return data?.unarchived?.count ? BROKER_INTERVAL : fallback;
  };
}

const MAX_COUNT_AGE = 6_000;
const RECOUNT_AFTER = 3_000;
/** The service queries the broker at most every five seconds. */
const BROKER_INTERVAL = 6_000;

/** Shows the latest response once all shown rows are gone. */
function useShowWhenAllGone(gone: boolean, show: () => void): void {
  useEffect(() => {
    if (gone) show();
  }, [gone, show]);
}

/** Returns the number of matches. Beyond the limit of the list's count it comes from the facets, which may be a minute old. */
function matchingIn({ total, facets }: Page, status: Status): Counted | undefined {
  if (!facets || total?.relation !== "gte") return total;
  const found =
    status === "any" ? sum(facets.status) : (facets.status.find(({ value }) => value === status)?.count ?? 0);
  if (found <= total.value) return total;
  return { value: found, relation: facets.relation === "eq" ? "about" : "gte" };
}

/** Identifies what facets count: they ignore the status. */
function facetScope(filters: Filters): string {
  return JSON.stringify({ ...filters, status: undefined });
}

function sum(facet: readonly { count: number }[]): number {
  return facet.reduce((all, one) => all + one.count, 0);
}

function idOf(line: Line): string {
  return line.id;
}
