// The outboxes that this address serves, if there are several.

import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, outbox } from "~/lib/mount";
import type { Schemas } from "./client";
import { failureFromResponse, isUnauthenticated } from "./problems";

export type Environment = Schemas["EnvironmentResponse"];

/** As `GET /outboxes` returns it. That path is outside of the OpenAPI document of a single outbox. */
export interface Outbox {
  name: string;
  /** null: unknown, because its database does not answer, or because the host application decides. */
  may_enter: boolean | null;
  environment: Environment | null;
}

/** Part of the session: log in and log out change who may enter which. */
const outboxes = queryOptions({
  queryKey: ["session", "outboxes"] as const,
  queryFn: async ({ signal }) => {
    const response = await fetch(new URL("../outboxes", api), { credentials: "same-origin", signal });
    const body: unknown = await response.json();
    if (response.ok) return (body as { items: readonly Outbox[] }).items;
    const failure = failureFromResponse(response, body);
    if (isUnauthenticated(failure)) return [];
    throw failure;
  },
  enabled: outbox !== undefined,
  staleTime: 60_000,
});

/** The outboxes; none for unauthenticated users, and if there is only one. */
export function useOutboxes(): readonly Outbox[] {
  return useQuery(outboxes).data ?? [];
}

/** URL of a page of another outbox's dashboard: of a list, because ids and filters differ between outboxes. */
export function pageIn(name: string, location: string): string {
  return new URL(`../${name}/ui/${location.split("/")[1] ?? ""}`, api).href;
}
