// What the page's address says: which state, which filter, which page of the list.

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
  created_after: text,
  created_before: text,
  cursor: text,
};

export type Place = Values<typeof PARAMETERS>;

/** The list in the address as the API is asked for it: what is not set is left out. */
export function listOf({ cursor: _, ...list }: Place): MessageList {
  const set = Object.entries(list).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as MessageList;
}

/** Whether anything narrows the list apart from the state. */
export function isNarrowed({ state: _, ...filters }: MessageList): boolean {
  return Object.keys(filters satisfies MessageFilters).length > 0;
}

/** Leads to one message, or without an id to the list, with the address's search part as it is. */
export function addressOf(id: string | undefined, search = window.location.search): string {
  const path = id === undefined ? "/messages" : `/messages/${encodeURIComponent(id)}`;
  return search ? `${path}?${search.replace(/^\?/, "")}` : path;
}
