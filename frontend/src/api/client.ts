// The one way to the API. Types are those of the OpenAPI document; addresses are relative to wherever the admin is mounted.

import createClient from "openapi-fetch";
import { api } from "~/lib/mount";
import { Failure, failureIn, failureOf } from "./problems";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export const client = createClient<paths>({
  baseUrl: api.href.replace(/\/$/, ""),
  credentials: "same-origin",
  headers: { accept: "application/json" },
  fetch: (request) => fetch(new Request(request, { signal: limited(request.signal) })),
});

/** The admin answers within seconds, or says that it cannot: what takes longer than this is not answered at all. */
const LIMIT = 30_000;

function limited(signal: AbortSignal): AbortSignal {
  // Browsers of before 2024 do not know it: there a request ends with its page.
  return "any" in AbortSignal ? AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]) : signal;
}

interface ApiResult<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What was answered, or a `Failure` thrown: `await answered(client.GET("/backlog", …))`. */
export async function dataOf<T>(request: Promise<ApiResult<T>>): Promise<T> {
  const { data, error, response } = await request.catch((thrown: unknown) => {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    throw failureOf(thrown);
  });
  if (response.ok) return data as T;
  throw failureIn(response, error);
}

/** A query without what is not set. */
export function withoutUndefined<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const set = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Whether a retry may help: no response, or only a proxy's. The service's own errors are shown at once. */
export function isRetryable(thrown: unknown): boolean {
  return thrown instanceof Failure && (thrown.status === 0 || thrown.status === 502 || thrown.status === 504);
}
