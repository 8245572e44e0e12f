// Requests that were refused, told where a person can mend them.

import { failureOf } from "~/api/problems";
import { number } from "~/lib/format";
import type { Errors, Field } from "./options";

const FIELDS: Record<string, Field> = {
  "body.destination": "queue",
  "body.rate_per_second": "rate",
  "body.canary.count": "canaryCount",
  "body.canary.wait_seconds": "canaryWait",
  "body.stop_on_failure_ratio": "stopPercent",
  "body.max_items": "maxItems",
  "body.reason": "reason",
};

export interface Misfit {
  at: string;
  message: string;
}

/** Everything that a refusal names. */
export function misfitsOf(thrown: unknown): readonly Misfit[] {
  const { errors } = failureOf(thrown).more;
  return Array.isArray(errors) ? errors.filter(isMisfit) : [];
}

/** What a refusal says of single fields. */
export function errorsOf(thrown: unknown): Errors {
  if (!thrown) return {};
  const found = misfitsOf(thrown).flatMap(({ at, message }) => {
    const place = Object.keys(FIELDS).find((name) => at === name || at.startsWith(`${name}.`));
    const field = place && FIELDS[place];
    return field ? [[field, message] as const] : [];
  });
  return Object.fromEntries(found);
}

/** Why another dry run follows by itself; undefined where none does. */
export function whyAgain(thrown: unknown): string | undefined {
  const { code, more } = failureOf(thrown);
  if (code !== "confirmation-required") return undefined;
  return `${AGAIN[String(more.reason)] ?? "The dry run did not count."} Nothing was done; here is a new one.`;
}

export const TOO_OLD = "The dry run had become too old to act on, so here is a new one.";

/** How the number has changed since the dry run, as a sentence. */
export function driftOf(thrown: unknown): string | undefined {
  if (!thrown) return undefined;
  const { code, more } = failureOf(thrown);
  if (code !== "count-drifted") return undefined;
  const [expected, found] = [Number(more.expected), Number(more.found)];
  return `The dry run found ${number(expected)}; by now there are ${number(found)}. Nothing was done.`;
}

const AGAIN: Record<string, string> = {
  expired: "The dry run was too old.",
  used: "The dry run was used already.",
  "other-request": "The dry run was of another request.",
  "other-actor": "The dry run was somebody else's.",
};

function isMisfit(found: unknown): found is Misfit {
  return typeof found === "object" && found !== null && "at" in found && "message" in found;
}
