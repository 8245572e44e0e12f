// Query client and keys. Each key starts with its resource, which stream events invalidate.

import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { isRetryable } from "./client";
import { isUnauthenticated } from "./problems";

/** First part of every query key. */
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
      onError: (thrown, { queryKey }) => queryKey[0] !== "session" && reloadSession(thrown),
    }),
    mutationCache: new MutationCache({ onError: reloadSession }),
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        gcTime: 5 * 60_000,
        retry: (failures, thrown) => failures < 2 && isRetryable(thrown),
        refetchOnWindowFocus: false,
        networkMode: "always",
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
  return queries;

  // Any request may be the first to notice that the session has ended. Its data stay, for a dialog that is open.
  function reloadSession(thrown: unknown): void {
    if (isUnauthenticated(thrown)) void queries.invalidateQueries({ queryKey: ["session"] });
  }
}
