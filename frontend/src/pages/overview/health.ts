// What the numbers mean: from when on something is late, and what is wrong, in words.

import { type Backlog, inQueues } from "~/api/backlog";
import type { Component } from "~/api/overview";
import type { Column, Statistics } from "~/api/statistics";
import { age, type Counted, count, plural, span } from "~/lib/format";
import type { Tone } from "~/ui";

/** Seconds that the oldest pending message may have been due before it is called late: as in the advised alert. */
export const LATE_AFTER = 60;
/** Seconds after which it is called overdue, because that is longer than a deployment or a restart takes. */
export const OVERDUE_AFTER = 300;

/** How long the oldest has been due; null where nothing is. Its age and the counts are taken one after the other. */
export function oldestPending({ states, oldest_pending_seconds: oldest }: Backlog): number | null {
  const due = [states.pending, states.blocked, states.retrying, states.held].some(({ value }) => value > 0);
  return due ? (oldest ?? 0) : null;
}

export interface Judgement {
  tone: Tone;
  word: string;
}

/** How grave the age of the oldest pending message is; null: nothing is pending. */
export function judged(oldest: number | null): Judgement {
  if (oldest === null) return { tone: "good", word: "Nothing waits" };
  if (oldest < LATE_AFTER) return { tone: "good", word: "In time" };
  if (oldest < OVERDUE_AFTER) return { tone: "warn", word: "Late" };
  return { tone: "bad", word: "Overdue" };
}

/** Seconds of work: a backlog that is smaller comes and goes by itself. */
export const WORTH_TELLING = 10;

/** Whether more comes than goes, and how that reads. */
export function flow({ states, per_second: speed, drained_in_seconds: drained }: Backlog): string {
  if (speed.incoming === null || speed.outgoing === null) return "Not all is known yet.";
  if (speed.incoming === 0 && speed.outgoing === 0) return "Nothing comes, and nothing goes.";
  const grows = drained === null && states.pending.value > speed.incoming * WORTH_TELLING;
  return grows ? "More comes than goes: the backlog grows." : "As much goes as comes.";
}

export interface Alive {
  alive: number;
  late: number;
  lost: number;
}

/** Seconds for which one that was lost counts as trouble: by then it has been replaced, or is known to be gone. */
export const MISSED_FOR = 900;

/** How many of a kind live, and how many were lost lately, as of then. */
export function living(components: readonly Component[], kind: string, asOf: string): Alive {
  const ofKind = components.filter((one) => one.kind === kind);
  const count = (condition: string) => ofKind.filter((one) => one.condition === condition);
  const lost = count("lost").filter(({ since }) => Date.parse(asOf) - Date.parse(since) < MISSED_FOR * 1000);
  return { alive: count("alive").length, late: count("late").length, lost: lost.length };
}

/** Seconds of a step that have to be over before its speed says anything: processes tell what they counted so often. */
const TOLD_WITHIN = 15;

/** Numbers of steps as speeds; the newest is divided by what is over of it. */
export function perSecond(
  column: Column,
  { startsAt, step, asOf }: Pick<Statistics, "startsAt" | "step" | "asOf">,
): Column {
  return column.map((value, index) => {
    const over = Math.min(step, asOf - (startsAt[index] ?? 0));
    return value === null || over < TOLD_WITHIN ? null : value / over;
  });
}

/** Whether nothing waits anywhere: neither in the outbox for a relay, nor at the broker for a worker. */
export function isIdle(backlog: Backlog): boolean {
  return oldestPending(backlog) === null && (inQueues(backlog) ?? 0) === 0;
}

/** `Last sent 3 s ago.`, by the clock of whoever says both. */
export function lastSent(at: string, asOf: string): string {
  return `Last sent ${age((Date.parse(asOf) - Date.parse(at)) / 1000)} ago.`;
}

/** The same as exactly as the steps of the last hour tell. */
export function lastSentByMinutes({
  sent,
  startsAt,
  step,
  asOf,
}: Pick<Statistics, "sent" | "startsAt" | "step" | "asOf">): string {
  const begin = startsAt[latestOf(sent) ?? -1];
  if (begin === undefined) return "Nothing was sent in the last hour.";
  const ended = asOf - (begin + step);
  return ended <= 0 ? "Last sent less than a minute ago." : `Last sent about ${age(ended)} ago.`;
}

function latestOf(column: Column): number | undefined {
  const index = column.findLastIndex((value) => value !== null && value > 0);
  return index < 0 ? undefined : index;
}

export interface Trouble {
  tone: "warn" | "bad";
  text: string;
  href: string;
}

/** Dead letters about which nobody has decided, and how many of them died in the last hour; undefined: not known yet. */
export interface Letters {
  open: Counted | undefined;
  fresh: Counted | undefined;
}

/** How grave they are: those that come now say that something is wrong now. */
export function gravityOf({ open, fresh }: Letters): Tone {
  if (fresh && fresh.value > 0) return "bad";
  return open && open.value > 0 ? "warn" : "neutral";
}

/** `2 new in the last hour`. */
export function freshInWords(fresh: Counted): string {
  return `${fresh.value > 0 ? count(fresh) : "none"} new in the last hour`;
}

/** What somebody has to look at, the gravest first. Pauses are told elsewhere on the page. */
export function troubles(
  backlog: Backlog,
  components: readonly Component[] | undefined,
  letters: Letters,
): Trouble[] {
  const { states } = backlog;
  const oldest = oldestPending(backlog);
  const found: Trouble[] = [];
  if (components) found.push(...missing(components));
  found.push(...died(letters));
  const { tone, word } = judged(oldest);
  if (tone === "warn" || tone === "bad") {
    found.push({
      tone,
      text: `${word}: the oldest pending message has waited for ${span(oldest)}.`,
      href: "/messages?state=pending",
    });
  }
  if (states.parked.value > 0) {
    const them = plural(states.parked.value, "message is", "messages are");
    found.push({
      tone: "bad",
      text: `${them} parked: publishing failed for good.`,
      href: "/messages?state=parked",
    });
  }
  if (states.held.value > 0) {
    const them = plural(states.held.value, "message is", "messages are");
    found.push({
      tone: "warn",
      text: `${them} held: no queue is bound.`,
      href: "/messages?state=held",
    });
  }
  if (states.stalled.value > 0) {
    const them = plural(states.stalled.value, "message is", "messages are");
    found.push({
      tone: "warn",
      text: `${them} stalled: a queue confirms nothing or is full.`,
      href: "/messages?state=stalled",
    });
  }
  return found.sort((one, other) => Number(one.tone === "warn") - Number(other.tone === "warn"));
}

function died({ open, fresh }: Letters): Trouble[] {
  const tone = gravityOf({ open, fresh });
  if (!open || (tone !== "warn" && tone !== "bad")) return [];
  const them = `${count(open)} ${open.value === 1 ? "dead letter is" : "dead letters are"} open`;
  return [{ tone, text: `${them}${fresh ? `, ${freshInWords(fresh)}` : ""}.`, href: "/dead-letters" }];
}

const LIVES: readonly string[] = ["alive", "late"];

function missing(components: readonly Component[]): Trouble[] {
  const meanings = [
    ["relay", "No relay is alive: nothing leaves the outbox."],
    ["worker", "No worker is alive: nobody handles messages."],
  ] as const;
  return meanings.flatMap(([kind, text]) => {
    const lives = components.some((one) => one.kind === kind && LIVES.includes(one.condition));
    return lives ? [] : [{ tone: "bad" as const, text, href: "/components" }];
  });
}
