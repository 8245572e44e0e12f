// URL parameters of the chain pages.

import { LISTED_STATES } from "~/api/chains";
import { choice, flag, integer, maybe, type Parameter, text } from "~/lib/url-state";

/** A comma-separated set of IDs. Each is encoded by itself, so that IDs can contain commas. */
export const ids: Parameter<ReadonlySet<string>> = {
  read: (found) => new Set(found === null ? [] : found.split(",").flatMap(decoded)),
  write: (value) => (value.size > 0 ? [...value].slice(0, MAX_IDS).map(encodeURIComponent).join(",") : null),
};

/** Keeps the URL within the length that servers and proxies accept. */
const MAX_IDS = 40;

function decoded(part: string): string[] {
  try {
    return [decodeURIComponent(part)];
  } catch {
    return [];
  }
}

export const VIEWS = ["waterfall", "tree", "table"] as const;
export type View = (typeof VIEWS)[number];

export const SORTS = ["chain", "state", "published", "outbox", "broker", "handling", "attempts"] as const;
export type Sort = (typeof SORTS)[number];

export const oneChain = {
  id: text,
  view: choice(VIEWS, "waterfall"),
  /** ID of the message in the details. */
  node: text,
  /** IDs of the messages whose effects are all shown, and of those whose effects are collapsed. */
  open: ids,
  shut: ids,
  /** Requests the maximum number of messages per response. */
  all: flag,
  sort: choice(SORTS, "chain"),
  down: flag,
  page: integer(1, 10_000),
};

export const recentChains = {
  state: maybe(LISTED_STATES),
  routing_key: text,
  sent_after: text,
  sent_before: text,
  cursor: text,
};
