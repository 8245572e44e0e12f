// The API client, typed from the OpenAPI document. URLs are relative to the path the admin is mounted at.

import createClient from "openapi-fetch";
import { useRef } from "react";
import { api } from "~/lib/mount";
import { randomKey } from "~/lib/random";
import { Failure, failureFromResponse, toFailure } from "./problems";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export const client = createClient<paths>({
  baseUrl: api.href.replace(/\/$/, ""),
  credentials: "same-origin",
  headers: { accept: "application/json" },
  fetch: (request) => fetch(new Request(request, { signal: withTimeout(request.signal) })),
});

/** Milliseconds until a request is aborted. The admin API has shorter timeouts and answers or fails well within this. */
const TIMEOUT = 30_000;

function withTimeout(signal: AbortSignal): AbortSignal {
  // Browsers older than 2024 lack AbortSignal.any. There, requests have no timeout.
  return "any" in AbortSignal ? AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]) : signal;
}

interface ApiResult<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the response's data, or throws a `Failure`: `await unwrap(client.GET("/backlog", …))`. */
export async function unwrap<T>(request: Promise<ApiResult<T>>): Promise<T> {
  const { data, error, response } = await request.catch((thrown: unknown) => {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    throw toFailure(thrown);
  });
  if (response.ok) return data as T;
  throw failureFromResponse(response, error);
}

/** Drops undefined values from query parameters. */
export function withoutUndefined<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const set = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Whether a retry may help: there was no response, or a proxy sent it. Errors of the service itself are shown at once. */
export function isRetryable(thrown: unknown): boolean {
  return thrown instanceof Failure && (thrown.status === 0 || thrown.status === 502 || thrown.status === 504);
}

/** Returns idempotency headers. An identical request sent again gets the same key, so it runs only once. */
export function useIdempotencyHeaders(): (request: unknown) => { "Idempotency-Key": string } {
  const sent = useRef({ text: "", key: "" });
  return (request) => {
    const text = JSON.stringify(request);
    if (sent.current.text !== text) sent.current = { text, key: randomKey() };
    return { "Idempotency-Key": sent.current.key };
  };
}
