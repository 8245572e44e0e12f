// What a request that failed throws: the API's own problem details, or that no response came.

import * as texts from "~/texts/api";
import type { components } from "./schema";

export type Code = components["schemas"]["Code"] | "unreachable" | "unreadable";

export class Failure extends Error {
  readonly code: Code;
  readonly title: string;
  /** 0 where no answer came. */
  readonly status: number;
  readonly requestId: string | undefined;
  /** Seconds after which the server invites another try. */
  readonly retryAfter: number | undefined;
  /** Further members of the problem: `errors`, `reason`, `expected` and the like, as they were sent. */
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

/** Whatever was thrown, as a failure with a title and a detail that a page can show. */
export function failureOf(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  return new Failure({
    code: "unreachable",
    title: texts.unreachable,
    detail: texts.unreachableDetail,
    status: 0,
  });
}

/** Whether authentication is required. */
export function isUnauthenticated(thrown: unknown): boolean {
  return failureOf(thrown).status === 401;
}

/** A failure in one line, with its code and with what the log calls it. */
export function inOneLine(thrown: unknown): string {
  const { message, code, requestId } = failureOf(thrown);
  return texts.oneLine(message, code, requestId);
}

/** The failure that an answer tells of; proxies in between answer in formats of their own. */
export function failureIn(response: Response, body: unknown): Failure {
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

function isProblem(body: unknown): body is components["schemas"]["ProblemDetails"] {
  return typeof body === "object" && body !== null && "code" in body && "title" in body && "detail" in body;
}
