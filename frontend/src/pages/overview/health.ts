// Texts and tones for the key figures. The server's verdict decides on the health itself.

import { type Backlog, countInQueues } from "~/api/backlog";
import type { Component, Finding, FindingCode, Verdict } from "~/api/overview";
import type { Column, Statistics } from "~/api/statistics";
import { age, type Counted, capitalize, count } from "~/lib/format";
import { queueAddress } from "~/lib/url-state";
import * as texts from "~/texts/overview";
import type { Tone } from "~/ui";

/** State and age of the oldest pending, held or stalled message. */
export interface Waiting {
  state: "pending" | "held" | "stalled";
  /** Null: not known yet. */
  seconds: number | null;
}

/** Returns the oldest waiting message, or null. Counts decide whether one exists, because ages are read at another time; an estimate lacks some. */
export function oldestWaiting(backlog: Backlog): Waiting | null {
  const { states } = backlog;
  const ages = [
    ["pending", backlog.oldest_pending_age_seconds],
    ["held", backlog.oldest_held_age_seconds],
    ["stalled", backlog.oldest_stalled_age_seconds],
  ] as const;
  const waiting = ages
    .filter(([state]) => states[state].value > 0)
    .map(([state, seconds]) => ({ state, seconds: seconds ?? (backlog.complete ? 0 : null) }));
  return waiting.reduce<Waiting | null>(
    (one, other) => (one && (one.seconds ?? -1) >= (other.seconds ?? -1) ? one : other),
    null,
  );
}

const WAITING_FINDINGS: readonly FindingCode[] = [
  "outbox_late",
  "clock_behind",
  "messages_held",
  "messages_stalled",
];
/** Findings about relays and workers, for the tile that counts them. */
export const COMPONENT_FINDINGS: readonly FindingCode[] = [
  "no_relay",
  "no_worker",
  "component_late",
  "component_lost",
  "component_waiting",
];

/** Returns the highest severity among the findings with these codes; neutral without a verdict. */
export function toneOf(verdict: Verdict | undefined, codes: readonly FindingCode[]): Tone {
  if (!verdict) return "neutral";
  const found = verdict.findings.filter(({ code }) => codes.includes(code));
  if (found.length === 0) return "good";
  return found.some(({ severity }) => severity === "error") ? "bad" : "warn";
}

export interface WaitingStatus {
  tone: Tone;
  word: string;
}

/** Returns how the verdict rates the oldest waiting message. */
export function waitingStatus(verdict: Verdict | undefined, waiting: Waiting | null): WaitingStatus {
  const tone = toneOf(verdict, WAITING_FINDINGS);
  const words: Partial<Record<Tone, string>> = {
    bad: texts.overdue,
    warn: texts.lateWord,
    good: texts.onTime,
  };
  if (!waiting)
    return { tone, word: tone === "bad" || tone === "warn" ? texts.nothingDue : texts.nothingWaiting };
  // Held and stalled messages need attention however short they have waited, so they are not called late.
  const isLate = waiting.state === "pending" || tone !== "warn";
  return { tone, word: isLate ? (words[tone] ?? "…") : capitalize(waiting.state) };
}

/** Seconds of work below which a backlog is normal. */
export const MIN_BACKLOG_SECONDS = 10;

/** Describes whether the backlog is growing or shrinking. */
export function flow({ states, per_second: speed, drained_in_seconds: drained }: Backlog): string {
  if (speed.incoming === null || speed.outgoing === null) return texts.collecting;
  if (speed.incoming === 0 && speed.outgoing === 0) return texts.noTraffic;
  const little = Math.max(speed.incoming, speed.outgoing) * MIN_BACKLOG_SECONDS;
  if (states.pending.value <= little) return texts.keepsUp;
  return drained === null ? texts.growing : texts.shrinking;
}

export interface Alive {
  alive: number;
  late: number;
  lost: number;
}

/** Counts the components of a kind. Lost ones count if they were lost within `within` seconds before `asOf`. */
export function countAlive(
  components: readonly Component[],
  kind: string,
  asOf: string,
  within: number,
): Alive {
  const ofKind = components.filter((one) => one.kind === kind);
  const count = (status: string) => ofKind.filter((one) => one.status === status);
  const lost = count("lost").filter(
    ({ status_changed_at }) => Date.parse(asOf) - Date.parse(status_changed_at) < within * 1000,
  );
  return { alive: count("alive").length, late: count("late").length, lost: lost.length };
}

/** Whether no messages wait, neither in the outbox nor at the broker. */
export function isIdle(backlog: Backlog): boolean {
  const { states } = backlog;
  const waits = [states.pending, states.blocked, states.retrying, states.held, states.stalled];
  return waits.every(({ value }) => value === 0) && (countInQueues(backlog) ?? 0) === 0;
}

/** Returns, for example, `Last sent 3 s ago.`, by the server's clock. */
export function lastSent(at: string, asOf: string): string {
  return texts.lastSent(age((Date.parse(asOf) - Date.parse(at)) / 1000));
}

/** Returns the same text from the statistics of the last hour, as precisely as their interval allows. */
export function lastSentByMinutes({
  sent,
  startsAt,
  step,
  asOf,
}: Pick<Statistics, "sent" | "startsAt" | "step" | "asOf">): string {
  const begin = startsAt[latestOf(sent) ?? -1];
  if (begin === undefined) return texts.nothingSent;
  const ended = asOf - (begin + step);
  return ended <= 0 ? texts.sentJustNow : texts.lastSentAbout(age(ended));
}

function latestOf(column: Column): number | undefined {
  const index = column.findLastIndex((value) => value !== null && value > 0);
  return index < 0 ? undefined : index;
}

/** Returns, for example, `2 new in the last hour`. */
export function newInLastHour(fresh: Counted): string {
  return texts.newInHour(fresh.value > 0 ? count(fresh) : texts.noneNew);
}

/** Findings about the topology of a queue. They link to the topology page. */
const TOPOLOGY_FINDINGS: readonly string[] = [
  "queue_missing",
  "dead_letter_queue_missing",
  "retry_queue_missing",
  "dead_letters_vanish",
  "queue_limit",
  "old_binding",
];

const COMPONENT_KINDS: readonly string[] = ["relay", "worker", "archiver", "maintenance"];

/** Returns the page that shows a finding. */
export function findingAddress({
  code,
  subject_kind: kind,
  subject,
}: Pick<Finding, "subject_kind" | "subject"> & { code: string }): string {
  if (code.startsWith("messages_")) return `/messages?state=${code.slice("messages_".length)}`;
  if (code === "destination_unserved") return `/messages?destination=${subject}`;
  if (code === "clock_behind") return "/messages?state=scheduled";
  if (code === "outbox_late") return "/messages?state=pending";
  if (code === "dead_letters") return "/dead-letters";
  if (kind === "queue" && subject && !TOPOLOGY_FINDINGS.includes(code)) return queueAddress(subject);
  return code === "paused" || COMPONENT_KINDS.includes(kind) ? "/components" : "/topology";
}
