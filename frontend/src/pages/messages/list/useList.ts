import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { useFallbackInterval } from "~/api/live";
import { countIn, countOfMessages, type MessageLine, type MessageState, messages } from "~/api/messages";
import { count } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { isNarrowed, listOf, type UrlState } from "../parameters";

export type Listed = ReturnType<typeof useList>;

/** The list for the URL parameters: rows in stable positions, and counts. */
export function useList(urlState: UrlState) {
  const list = useMemo(() => listOf(urlState), [urlState]);
  const requestedScope = JSON.stringify([list, urlState.cursor]);
  const narrowed = isNarrowed(list);
  const query = useQuery({ ...messages(list, urlState.cursor), refetchInterval: useFallbackInterval() });
  const counted = useQuery({ ...countOfMessages(list), enabled: narrowed });
  const { data } = query;
  const stable = useStableList(data?.items, data?.scope ?? requestedScope, idOf);
  useShowWhenAllGone(stable.items.length > 0 && stable.gone.size === stable.items.length, stable.show);

  /** Returns the ID of the next row, in either direction. */
  const neighbour = useCallback(
    (id: string | undefined, step: 1 | -1): string | undefined => {
      const at = stable.items.findIndex((line) => line.id === id);
      return at < 0 ? undefined : stable.items[at + step]?.id;
    },
    [stable.items],
  );
  return {
    query,
    stable,
    narrowed,
    neighbour,
    /** Whether the rows of the previous page or filter are still shown. */
    stale: data !== undefined && data.scope !== requestedScope,
    /** Returns the count of a tab. While filters are set, only the count of the current tab is known. */
    countOf(state: MessageState | undefined): string | undefined {
      if (narrowed) return state === urlState.state && counted.data ? count(counted.data) : undefined;
      const known = state && data && countIn(data, state);
      return known ? count(known) : undefined;
    },
  };
}

/** Shows the latest response once all shown rows are gone. */
function useShowWhenAllGone(gone: boolean, show: () => void): void {
  useEffect(() => {
    if (gone) show();
  }, [gone, show]);
}

function idOf(line: MessageLine): string {
  return line.id;
}
