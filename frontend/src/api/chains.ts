// Chains: which message led to which, and what became of each.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";
import { useConnection, useFallbackInterval } from "./live";

export type Chain = Schemas["ChainResponse"];
export type ChainMessage = Schemas["ChainMessage"];
/** What became of a message in one queue. */
export type Delivery = Schemas["ChainDelivery"];
/** One attempt of a handler. */
export type Attempt = Schemas["ChainAttempt"];
/** A chain in a list of them. */
export type ChainSummary = Schemas["ChainSummary"];

/** Every state that a chain can be in, what needs attention first, as the server sorts them. */
export const LISTED_STATES = [
  "dead",
  "parked",
  "held",
  "stalled",
  "blocked",
  "retrying",
  "in_flight",
  "queued",
  "requeued",
  "sent",
  "pending",
  "scheduled",
  "discarded",
  "processed",
  "unknown",
] as const satisfies readonly ChainSummary["state"][];

export interface ChainFilters {
  state?: (typeof LISTED_STATES)[number] | undefined;
  routing_key?: string | undefined;
  sent_after?: string | undefined;
  sent_before?: string | undefined;
}

const PAGE = 50;
/** Messages of a chain that are asked for at first, and at most. */
export const INITIAL_LIMIT = 500;
export const MAX_LIMIT = 2_000;

export function chainList(filters: ChainFilters, cursor: string | undefined) {
  const query = withoutUndefined({ ...filters, limit: PAGE, cursor });
  return queryOptions({
    queryKey: ["chains", "recent", query] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/chains", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** Reads a chain by the id of any of its messages; while something of it is under way, again every few seconds. */
export function useChain(id: string, most: number) {
  const fallback = useFallbackInterval();
  const connected = useConnection() === "live";
  return useQuery({
    queryKey: ["chains", "one", id, most] as const,
    queryFn: ({ signal }) => {
      const path = { tracking_id: isPlain(id) ? id : "-" };
      const query = { max_nodes: most, ...(isPlain(id) ? {} : { id }) };
      return dataOf(client.GET("/chains/{tracking_id}", { params: { path, query }, signal }));
    },
    placeholderData: (before, query) => (query?.queryKey[2] === id ? before : undefined),
    refetchInterval: ({ state: { data } }) =>
      fallback || (connected && data !== undefined && isUnderWay(data) ? EVERY : false),
  });
}

const EVERY = 5_000;
const UNDER_WAY: ReadonlySet<string> = new Set(["pending", "retrying", "queued", "in_flight", "requeued"]);

function isUnderWay({ nodes }: Chain): boolean {
  return nodes.some(({ state }) => UNDER_WAY.has(state));
}

/** Whether an id can be a part of an address as it is; others go behind the question mark. */
function isPlain(id: string): boolean {
  return id !== "-" && /^[\w-]{1,200}$/.test(id);
}

/** The page of the chain that the message with this id belongs to. */
export function chainAddress(id: string): string {
  return isPlain(id) ? `/chains/${id}` : `/chains/-?${new URLSearchParams({ id })}`;
}
