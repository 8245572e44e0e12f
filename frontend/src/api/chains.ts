// Chains of messages: causes, effects, and the outcome of each delivery.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap, withoutUndefined } from "./client";
import { useConnection, useFallbackInterval } from "./live";

export type Chain = Schemas["ChainResponse"];
export type ChainMessage = Schemas["ChainMessage"];
/** Outcome of a message in one queue. */
export type Delivery = Schemas["ChainDelivery"];
/** One run of a handler. */
export type Attempt = Schemas["ChainAttempt"];
/** A chain as the list shows it. */
export type ChainSummary = Schemas["ChainSummary"];

/** All states of a chain, most urgent first, in the order the server sorts by. */
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

const PAGE_SIZE = 50;
/** Messages of a chain to load at first, and the maximum. */
export const INITIAL_LIMIT = 500;
export const MAX_LIMIT = 2_000;

export function chainList(filters: ChainFilters, cursor: string | undefined) {
  const query = withoutUndefined({ ...filters, limit: PAGE_SIZE, cursor });
  return queryOptions({
    queryKey: ["chains", "recent", query] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/chains", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** Loads a chain by the id of any of its messages. Polls while part of the chain is still active. */
export function useChain(id: string, maxNodes: number) {
  const fallback = useFallbackInterval();
  const connected = useConnection() === "live";
  return useQuery({
    queryKey: ["chains", "one", id, maxNodes] as const,
    queryFn: ({ signal }) => {
      const path = { tracking_id: isPathSafe(id) ? id : "-" };
      const query = { max_nodes: maxNodes, ...(isPathSafe(id) ? {} : { id }) };
      return unwrap(client.GET("/chains/{tracking_id}", { params: { path, query }, signal }));
    },
    placeholderData: (previous, query) => (query?.queryKey[2] === id ? previous : undefined),
    refetchInterval: ({ state: { data } }) =>
      fallback || (connected && data !== undefined && isActive(data) ? REFETCH_INTERVAL : false),
  });
}

const REFETCH_INTERVAL = 5_000;
const ACTIVE: ReadonlySet<string> = new Set(["pending", "retrying", "queued", "in_flight", "requeued"]);

function isActive({ nodes }: Chain): boolean {
  return nodes.some(({ state }) => ACTIVE.has(state));
}

/** Whether an id can be a path segment. Other ids are sent as a query parameter. */
function isPathSafe(id: string): boolean {
  return id !== "-" && /^[\w-]{1,200}$/.test(id);
}

/** Address of the page of the chain that contains this message. */
export function chainAddress(id: string): string {
  return isPathSafe(id) ? `/chains/${id}` : `/chains/-?${new URLSearchParams({ id })}`;
}
