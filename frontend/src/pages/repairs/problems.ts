// Errors of rejected requests, by field.

import { toFailure } from "~/api/problems";
import * as texts from "~/texts/repairs";
import type { Errors, Field } from "./options";

const FIELDS: Record<string, Field> = {
  "body.destination": "queue",
  "body.rate_per_second": "rate",
  "body.starts_at": "startsAt",
  "body.canary.count": "canaryCount",
  "body.canary.wait_seconds": "canaryWait",
  "body.stop_on_failure_ratio": "stopPercent",
  "body.max_items": "maxItems",
  "body.reason": "reason",
};

export interface FieldProblem {
  at: string;
  message: string;
}

/** Returns all problems that a rejection lists. */
export function fieldProblemsOf(thrown: unknown): readonly FieldProblem[] {
  const { errors } = toFailure(thrown).more;
  return Array.isArray(errors) ? errors.filter(isFieldProblem) : [];
}

/** Returns the problems of a rejection that belong to a field. */
export function errorsOf(thrown: unknown): Errors {
  if (!thrown) return {};
  const found = fieldProblemsOf(thrown).flatMap(({ at, message }) => {
    const path = Object.keys(FIELDS).find((name) => at === name || at.startsWith(`${name}.`));
    const field = path && FIELDS[path];
    return field ? [[field, message] as const] : [];
  });
  return Object.fromEntries(found);
}

/** Returns why the dry run is repeated automatically; undefined if it is not. */
export function whyNewDryRun(thrown: unknown): string | undefined {
  const { code, more } = toFailure(thrown);
  if (code !== "confirmation_required") return undefined;
  return texts.newDryRunBecause(TOKEN_REASONS[String(more.reason)] ?? texts.dryRunInvalid);
}

export const DRY_RUN_EXPIRED = texts.dryRunTooOld;

/** Returns a sentence on how the count has changed since the dry run. */
export function countChangeOf(thrown: unknown): string | undefined {
  if (!thrown) return undefined;
  const { code, more } = toFailure(thrown);
  if (code !== "count_drifted") return undefined;
  const [expected, found] = [Number(more.expected), Number(more.found)];
  return texts.drift(expected, found);
}

const TOKEN_REASONS: Record<string, string> = {
  expired: texts.expired,
  used: texts.used,
  other_request: texts.otherRequest,
  other_actor: texts.otherActor,
};

function isFieldProblem(found: unknown): found is FieldProblem {
  return typeof found === "object" && found !== null && "at" in found && "message" in found;
}
