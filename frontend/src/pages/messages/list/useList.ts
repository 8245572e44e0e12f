import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { useFallbackInterval } from "~/api/live";
import { countIn, countOfMessages, type MessageLine, type MessageState, messages } from "~/api/messages";
import { count } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { isNarrowed, listOf, type Place } from "../parameters";

export type Listed = ReturnType<typeof useList>;

/** The list that the address asks for: its rows, held in their places, and how many there are. */
export function useList(place: Place) {
  const list = useMemo(() => listOf(place), [place]);
  const asked = JSON.stringify([list, place.cursor]);
  const narrowed = isNarrowed(list);
  const query = useQuery({ ...messages(list, place.cursor), refetchInterval: useFallbackInterval() });
  const counted = useQuery({ ...countOfMessages(list), enabled: narrowed });
  const { data } = query;
  const held = useStableList(data?.items, data?.scope ?? asked, idOf);
  useNothingLeft(held.items.length > 0 && held.gone.size === held.items.length, held.show);

  /** The row next to one, in either direction. */
  const neighbour = useCallback(
    (id: string | undefined, step: 1 | -1): string | undefined => {
      const at = held.items.findIndex((line) => line.id === id);
      return at < 0 ? undefined : held.items[at + step]?.id;
    },
    [held.items],
  );
  return {
    query,
    held,
    narrowed,
    neighbour,
    /** An answer to another question is still shown. */
    turning: data !== undefined && data.scope !== asked,
    /** How many are behind a tab: of all, or while filters are set of those that fit, for the chosen one. */
    countOf(state: MessageState | undefined): string | undefined {
      if (narrowed) return state === place.state && counted.data ? count(counted.data) : undefined;
      const known = state && data && countIn(data, state);
      return known ? count(known) : undefined;
    },
  };
}

/** Once every row that is held has gone, there is nothing to hold any more. */
function useNothingLeft(gone: boolean, show: () => void): void {
  useEffect(() => {
    if (gone) show();
  }, [gone, show]);
}

function idOf(line: MessageLine): string {
  return line.id;
}
