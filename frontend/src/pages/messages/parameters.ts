// URL parameters of the page: state, filters, page of the list.

import { type MessageFilters, type MessageList, type MessageState, UNSENT } from "~/api/messages";
import { maybe, text, type Values } from "~/lib/url-state";

export const STATES: readonly MessageState[] = [...UNSENT, "sent"];

export const PARAMETERS = {
  state: maybe(STATES),
  routing_key: text,
  ordering_key: text,
  message_id: text,
  tracking_id: text,
  target_queue: text,
  destination: text,
  created_after: text,
  created_before: text,
  cursor: text,
};

export type UrlState = Values<typeof PARAMETERS>;

/** Returns the filters for the API, without unset ones. */
export function listOf({ cursor: _, ...list }: UrlState): MessageList {
  const set = Object.entries(list).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as MessageList;
}

/** Whether any filter other than the state is set. */
export function isNarrowed({ state: _, ...filters }: MessageList): boolean {
  return Object.keys(filters satisfies MessageFilters).length > 0;
}

/** Returns the address of a message, or of the list without an ID. Keeps the query string. */
export function addressOf(id: string | undefined, search = window.location.search): string {
  const path = id === undefined ? "/messages" : `/messages/${encodeURIComponent(id)}`;
  return search ? `${path}?${search.replace(/^\?/, "")}` : path;
}
