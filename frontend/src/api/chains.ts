// Chains: which message led to which, and what became of each.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "./client";
import { useConnection, useFallbackInterval } from "./live";

/** One attempt of a handler. */
export interface Attempt {
  endedAt: string | null;
  number: number;
  outcome: string;
  seconds: number | null;
  error: Failed | null;
  worker: string;
}

export interface Failed {
  type: string;
  message: string;
}

/** What became of a message in one queue. */
export interface Leg {
  queue: string;
  state: string;
  attempts: number;
  receivedAt: string | null;
  waitedSeconds: number | null;
  handlingSeconds: number | null;
  dueAt: string | null;
  tries: readonly Attempt[];
}

export interface ChainMessage {
  id: string;
  parentId: string | null;
  state: string;
  routingKey: string;
  publishedAt: string | null;
  sentAt: string | null;
  waitedSeconds: number | null;
  dueAt: string | null;
  relay: string;
  /** What keeps it in the outbox. */
  error: string | null;
  requeues: number;
  legs: readonly Leg[];
}

export interface Chain {
  rootId: string;
  state: string;
  seconds: number | null;
  /** Ids from the beginning to the message to which something happened last. */
  criticalPath: readonly string[];
  truncated: boolean;
  /** What cannot be known of it, in sentences. */
  unknown: readonly string[];
  messages: readonly ChainMessage[];
}

/** A chain in a list of them. */
export interface Beginning {
  rootId: string;
  routingKey: string;
  state: string;
  sentAt: string | null;
  seconds: number | null;
  messages: number;
  deaths: number;
  /** There is more of it than was counted. */
  more: boolean;
}

export interface Beginnings {
  items: readonly Beginning[];
  next: string | null;
  previous: string | null;
}

export const LISTED_STATES = ["dead", "retrying", "requeued", "sent", "discarded", "processed"] as const;

export interface BeginningFilters {
  state?: (typeof LISTED_STATES)[number] | undefined;
  routingKey?: string | undefined;
  after?: string | undefined;
  before?: string | undefined;
}

const PAGE = 50;
/** Messages of a chain that are asked for at first, and at most. */
export const FEWER = 500;
export const MOST = 2_000;

export function beginnings(filters: BeginningFilters, cursor: string | undefined) {
  const query = {
    limit: PAGE,
    ...(filters.state && { state: filters.state }),
    ...(filters.routingKey && { routing_key: filters.routingKey }),
    ...(filters.after && { after: filters.after }),
    ...(filters.before && { before: filters.before }),
    ...(cursor && { cursor }),
  };
  return queryOptions({
    queryKey: ["chains", "recent", query] as const,
    queryFn: async ({ signal }): Promise<Beginnings> => {
      const page = await answered(client.GET("/chains", { params: { query }, signal }));
      return { items: page.items.map(beginningOf), next: page.next, previous: page.previous };
    },
    placeholderData: keepPreviousData,
  });
}

function beginningOf(wire: Schemas["ChainLine"]): Beginning {
  return {
    rootId: wire.root_id,
    routingKey: wire.routing_key,
    state: wire.state,
    sentAt: wire.sent_at,
    seconds: wire.duration_seconds,
    messages: wire.messages,
    deaths: wire.deaths,
    more: wire.more,
  };
}

/** Reads a chain by the id of any of its messages; while something of it is under way, again every few seconds. */
export function useChain(id: string, most: number) {
  const fallback = useFallbackInterval();
  const connected = useConnection() === "live";
  return useQuery({
    queryKey: ["chains", "one", id, most] as const,
    queryFn: async ({ signal }): Promise<Chain> => {
      const path = { tracking_id: isPlain(id) ? id : "-" };
      const query = { max_nodes: most, ...(isPlain(id) ? {} : { id }) };
      return chainOf(
        await answered(client.GET("/chains/{tracking_id}", { params: { path, query }, signal })),
      );
    },
    placeholderData: (before, query) => (query?.queryKey[2] === id ? before : undefined),
    refetchInterval: ({ state: { data } }) =>
      fallback || (connected && data !== undefined && isUnderWay(data) ? EVERY : false),
  });
}

const EVERY = 5_000;
const UNDER_WAY: ReadonlySet<string> = new Set(["pending", "retrying", "in a queue", "in hand", "requeued"]);

function isUnderWay({ messages }: Chain): boolean {
  return messages.some(({ state }) => UNDER_WAY.has(state));
}

/** Whether an id can be a part of an address as it is; others go behind the question mark. */
function isPlain(id: string): boolean {
  return id !== "-" && /^[\w-]{1,200}$/.test(id);
}

/** The page of the chain that the message with this id belongs to. */
export function chainAddress(id: string): string {
  return isPlain(id) ? `/chains/${id}` : `/chains/-?${new URLSearchParams({ id })}`;
}

export function chainOf(wire: Schemas["ChainAnswer"]): Chain {
  return {
    rootId: wire.root_id,
    state: wire.state,
    seconds: wire.duration_seconds,
    criticalPath: wire.critical_path,
    truncated: wire.truncated,
    unknown: wire.unknown,
    messages: wire.nodes.map(messageOf),
  };
}

function messageOf(wire: Schemas["NodeAnswer"]): ChainMessage {
  return {
    id: wire.id,
    parentId: wire.parent_id,
    state: wire.state,
    routingKey: wire.routing_key,
    publishedAt: wire.published_at,
    sentAt: wire.sent_at,
    waitedSeconds: wire.waited_seconds,
    dueAt: wire.due_at,
    relay: wire.relay,
    error: wire.last_error,
    requeues: wire.requeue_count,
    legs: wire.legs.map(legOf),
  };
}

function legOf(wire: Schemas["LegAnswer"]): Leg {
  return {
    queue: wire.queue,
    state: wire.state,
    attempts: wire.attempts,
    receivedAt: wire.received_at,
    waitedSeconds: wire.waited_seconds,
    handlingSeconds: wire.handling_seconds,
    dueAt: wire.due_at,
    tries: wire.tries.map(attemptOf),
  };
}

function attemptOf(wire: Schemas["TryAnswer"]): Attempt {
  return {
    endedAt: wire.at,
    number: wire.attempt,
    outcome: wire.outcome,
    seconds: wire.handling_seconds,
    error: wire.error,
    worker: wire.component,
  };
}
