// How answers are kept. The first part of each key is the resource: events of the stream name it to read it again.

import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { isRetryable } from "./client";
import { isUnauthenticated } from "./problems";

/** The first part of every key. */
export type Resource =
  | "session"
  | "backlog"
  | "queues"
  | "messages"
  | "deliveries"
  | "dead-letters"
  | "groups"
  | "operations"
  | "chains"
  | "statistics"
  | "components"
  | "pauses"
  | "topology"
  | "audit"
  | "search";

export type Key = readonly [Resource, ...unknown[]];

export function newQueryClient(): QueryClient {
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError: (thrown, { queryKey }) => queryKey[0] !== "session" && askWhoIsLooking(thrown),
    }),
    mutationCache: new MutationCache({ onError: askWhoIsLooking }),
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        gcTime: 5 * 60_000,
        retry: (tries, thrown) => tries < 2 && isRetryable(thrown),
        refetchOnWindowFocus: false,
        networkMode: "always",
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
  return queries;

  /** A session that ended meanwhile is noticed by whatever is read or changed next. */
  function askWhoIsLooking(thrown: unknown): void {
    if (isUnauthenticated(thrown)) void queries.resetQueries({ queryKey: ["session"] });
  }
}
