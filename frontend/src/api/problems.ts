// Errors of failed requests: the API's problem details, or no usable response.

import * as texts from "~/texts/api";
import type { components } from "./schema";

export type Code = components["schemas"]["Code"] | "unreachable" | "unreadable";

export class Failure extends Error {
  readonly code: Code;
  readonly title: string;
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly requestId: string | undefined;
  /** Seconds after which to retry, as the server suggests. */
  readonly retryAfter: number | undefined;
  /** Other members of the problem details, unchanged: `errors`, `reason`, `expected`. */
  readonly more: Readonly<Record<string, unknown>>;

  constructor(facts: {
    code: Code;
    title: string;
    detail: string;
    status: number;
    requestId?: string | undefined;
    retryAfter?: number | undefined;
    more?: Readonly<Record<string, unknown>>;
  }) {
    super(facts.detail);
    this.name = "Failure";
    this.code = facts.code;
    this.title = facts.title;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
    this.more = facts.more ?? {};
  }
}

/** Converts any thrown value to a failure with a title and detail to display. */
export function toFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  // A proxy may send its own page, such as its login, as a success.
  if (thrown instanceof SyntaxError) {
    return new Failure({
      code: "unreadable",
      title: texts.notJson,
      detail: texts.unreadableDetail,
      status: 200,
    });
  }
  return new Failure({
    code: "unreachable",
    title: texts.unreachable,
    detail: texts.unreachableDetail,
    status: 0,
  });
}

/** Whether the request failed for lack of authentication. */
export function isUnauthenticated(thrown: unknown): boolean {
  return toFailure(thrown).status === 401;
}

/** A failure on one line, with its code and request id. */
export function describeFailure(thrown: unknown): string {
  const { message, code, requestId } = toFailure(thrown);
  return texts.oneLine(message, code, requestId);
}

/** Converts an error response to a failure. Proxies may send other formats than problem details. */
export function failureFromResponse(response: Response, body: unknown): Failure {
  const retryAfter = Number(response.headers.get("retry-after")) || undefined;
  const requestId = response.headers.get("x-request-id") ?? undefined;
  if (isProblem(body)) {
    const { code, title, detail, status, request_id, type: _, ...more } = body;
    return new Failure({ code, title, detail, status, requestId: request_id, retryAfter, more });
  }
  return new Failure({
    code: "unreadable",
    title: texts.unreadable(response.status, response.statusText).trim(),
    detail: texts.unreadableDetail,
    status: response.status,
    requestId,
    retryAfter,
    more: { body },
  });
}

function isProblem(body: unknown): body is components["schemas"]["OutboxProblem"] {
  return typeof body === "object" && body !== null && "code" in body && "title" in body && "detail" in body;
}
