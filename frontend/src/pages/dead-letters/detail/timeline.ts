// What happened to one dead letter, in the order in which it happened.

import type { Failed, Letter, Life } from "~/api/dead-letter";
import { plural } from "~/lib/format";
import type { IconName, Tone } from "~/ui";

export interface Happening {
  key: string;
  at: string | null;
  what: string;
  /** In a few words, below. */
  more?: string | undefined;
  /** Seconds since what happened before it. */
  after?: number | undefined;
  tone: Tone;
  icon: IconName;
  /** The failure, for its traceback. */
  failure?: Failed;
}

/** Every failure, requeue, edit and decision, oldest first; of what has no time, nobody knows when. */
export function timelineOf(letter: Letter): readonly Happening[] {
  const all: readonly Happening[] = [
    created(letter),
    ...letter.trail.map(failed),
    ...letter.lives.flatMap((life, index) => lived(life, index)),
    ...letter.editions.map(
      ({ version, replaced_at, replaced_by }): Happening => ({
        key: `edited ${version}`,
        at: replaced_at,
        what: `Edited by ${replaced_by ?? "somebody"}`,
        more: `Version ${version} was replaced.`,
        tone: "info",
        icon: "edit",
      }),
    ),
    ...decided(letter),
  ];
  const sorted = [...all].sort((a, b) => timeOf(a) - timeOf(b) || all.indexOf(a) - all.indexOf(b));
  return sorted.map((one, index) => ({ ...one, after: secondsBetween(sorted[index - 1]?.at, one.at) }));
}

function created({ created_at, routing_key }: Letter): Happening {
  return {
    key: "created",
    at: created_at,
    what: `Written with the routing key ${routing_key}`,
    tone: "neutral",
    icon: "messages",
  };
}

function failed(failure: Failed, index: number): Happening {
  const { attempt, type, message, worker, at } = failure;
  return {
    key: `failed ${index}`,
    at,
    what: `Attempt ${attempt} failed${worker ? ` at ${worker}` : ""}`,
    more: [type, message].filter(Boolean).join(": "),
    tone: "warn",
    icon: "cross",
    failure,
  };
}

function lived(life: Life, index: number): readonly Happening[] {
  const requeued: Happening = {
    key: `requeued ${index}`,
    at: life.requeued_at,
    what: `Requeued by ${life.requeued_by}${life.queue === null ? "" : ` to ${life.queue}`}`,
    more: life.fate === "under way" ? "It is under way: what became of it is not known yet." : undefined,
    tone: "info",
    icon: "operations",
  };
  const end = ENDS[life.fate];
  return end ? [requeued, { key: `ended ${index}`, at: life.ended_at, ...end }] : [requeued];
}

const ENDS: Record<Life["fate"], Omit<Happening, "key" | "at"> | undefined> = {
  "under way": undefined,
  "died again": { what: "Came back dead", tone: "bad", icon: "dead" },
  processed: { what: "Processed", tone: "good", icon: "check" },
  duplicate: {
    what: "Not processed again",
    more: "The queue's inbox knew it already.",
    tone: "neutral",
    icon: "info",
  },
};

function decided({
  status,
  resolved_at,
  resolved_by,
  resolution,
  lives,
  failed_at,
  cause,
  failures,
}: Letter) {
  const decisions: Happening[] = [];
  if (!lives.some(({ fate, ended_at }) => fate === "died again" && ended_at === failed_at)) {
    decisions.push({
      key: "given up",
      at: failed_at,
      what: `Given up: ${cause}`,
      more: `After ${plural(failures, "failure")} in all.`,
      tone: "bad",
      icon: "dead",
    });
  }
  if (resolved_at === null || status === "open") return decisions;
  if (status === "requeued" && lives.some(({ requeued_at }) => near(requeued_at, resolved_at)))
    return decisions;
  decisions.push({
    key: "resolved",
    at: resolved_at,
    what: `${status === "discarded" ? "Discarded" : "Requeued"} by ${resolved_by ?? "somebody"}`,
    more: resolution ?? undefined,
    tone: status === "discarded" ? "neutral" : "info",
    icon: status === "discarded" ? "trash" : "operations",
  });
  return decisions;
}

/** The same requeue, told by the letter and by the history, may differ by the time of a transaction. */
function near(one: string, other: string): boolean {
  return Math.abs(new Date(one).getTime() - new Date(other).getTime()) < 1_000;
}

function secondsBetween(before: string | null | undefined, at: string | null): number | undefined {
  if (before == null || at === null) return undefined;
  return (new Date(at).getTime() - new Date(before).getTime()) / 1000;
}

function timeOf({ at }: Happening): number {
  return at === null ? Number.NEGATIVE_INFINITY : new Date(at).getTime();
}
