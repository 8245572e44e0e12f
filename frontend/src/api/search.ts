// Search across all resources.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { chainAddress } from "./chains";
import { client, type Schemas, unwrap } from "./client";

export type SearchResult = Schemas["SearchResult"];
export type Kind = SearchResult["kind"];

export function useSearchResults(q: string) {
  return useQuery({
    queryKey: ["search", q] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/search", { params: { query: { q } }, signal })),
    placeholderData: keepPreviousData,
    enabled: q !== "",
    staleTime: 5_000,
  });
}

/** Address of the page that shows a result. */
export function addressOf({ kind, id, queue }: SearchResult): string {
  const query = (name: string) => new URLSearchParams({ [name]: id });
  switch (kind) {
    case "message":
      return `/messages/${encodeURIComponent(id)}`;
    case "delivery":
      return `/queues?${new URLSearchParams({ name: queue ?? "", delivery: id })}`;
    case "dead_letter":
      return `/dead-letters/${encodeURIComponent(id)}`;
    case "chain":
      return chainAddress(id);
    case "queue":
      return `/queues?${query("name")}`;
    case "routing_key":
      return `/messages?${query("routing_key")}`;
    case "component":
      return `/components?${query("open")}`;
  }
}
