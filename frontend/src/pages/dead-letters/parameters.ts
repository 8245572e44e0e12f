// URL parameters of the page: view, filters, page of the list.

import type { Filters, Status } from "~/api/dead-letters";
import { choice, integer, maybe, text, type Values } from "~/lib/url-state";
import * as texts from "~/texts/dead-letters";

export const PARAMETERS = {
  view: choice(["groups", "messages"], "groups"),
  group_status: choice(["active", "fixed", "muted", "any"], "active"),
  by: choice(["fingerprint", "queue", "routing_key"], "fingerprint"),
  status: choice(["open", "requeued", "discarded", "any"], "open"),
  source: maybe(["relay", "worker", "broker"]),
  queue: text,
  routing_key: text,
  exception_type: text,
  group_id: text,
  tracking_id: text,
  message_id: text,
  failed_after: text,
  failed_before: text,
  min_failures: integer(1, 2 ** 31 - 1),
  destination: text,
  q: text,
  sort: choice(["newest", "oldest"], "newest"),
  cursor: text,
};

export type UrlState = Values<typeof PARAMETERS>;

/** Returns the filters for the API, without unset ones. */
export function filtersOf({ view, group_status, by, sort, cursor, ...filters }: UrlState): Filters {
  const set = Object.entries(filters).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as unknown as Filters;
}

/** Whether any filter other than the status is set. */
export function isNarrowed({ status: _, ...others }: Filters): boolean {
  return Object.keys(others).length > 0;
}

/** Returns the address of a dead letter, or of the list without an ID. Keeps the query string. */
export function addressOf(id: string | undefined): string {
  const path = id === undefined ? "/dead-letters" : `/dead-letters/${encodeURIComponent(id)}`;
  return path + window.location.search;
}

export const STATUSES: readonly (readonly [Status, string])[] = [
  ["open", texts.open],
  ["requeued", texts.requeued],
  ["discarded", texts.discarded],
  ["any", texts.anyStatus],
];
