// What of the chains is in the address.

import { LISTED_STATES } from "~/api/chains";
import { choice, flag, integer, maybe, type Parameter, text } from "~/lib/url-state";

/** Ids, each encoded for itself: whatever they contain, a comma parts them. */
export const ids: Parameter<ReadonlySet<string>> = {
  read: (found) => new Set(found === null ? [] : found.split(",").flatMap(decoded)),
  write: (value) => (value.size > 0 ? [...value].slice(0, MOST_IDS).map(encodeURIComponent).join(",") : null),
};

/** More would make the address too long to be sent. */
const MOST_IDS = 40;

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
  /** The message whose facts are shown. */
  node: text,
  /** Whose children are all shown, and below whom nothing is. */
  open: ids,
  shut: ids,
  /** Asks for as many messages as are answered at once. */
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
