// The events of a dead letter, in order.

import type { DeadLetter, FailedAttempt, Requeue } from "~/api/dead-letter";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import type { IconName, Tone } from "~/ui";

export interface TimelineEvent {
  key: string;
  at: string | null;
  what: string;
  /** Details, shown below. */
  more?: string | undefined;
  /** Seconds since the previous event. */
  after?: number | undefined;
  tone: Tone;
  icon: IconName;
  /** The failure, for its traceback. */
  failure?: FailedAttempt;
}

/** Returns every failure, requeue, edit and decision, oldest first. Events without a time come first. */
export function timelineOf(deadLetter: DeadLetter): readonly TimelineEvent[] {
  const all: readonly TimelineEvent[] = [
    createdEvent(deadLetter),
    ...deadLetter.failures.map(failureEvent),
    ...deadLetter.requeues.flatMap((requeue, index) => requeueEvents(requeue, index)),
    ...deadLetter.editions.map(
      ({ version, replaced_at, replaced_by }): TimelineEvent => ({
        key: `edited ${version}`,
        at: replaced_at,
        what: texts.editedBy(replaced_by ?? common.unknownActor),
        more: texts.versionReplaced(version),
        tone: "info",
        icon: "edit",
      }),
    ),
    ...decisionEvents(deadLetter),
  ];
  const sorted = [...all].sort((a, b) => timeOf(a) - timeOf(b) || all.indexOf(a) - all.indexOf(b));
  return sorted.map((one, index) => ({ ...one, after: secondsBetween(sorted[index - 1]?.at, one.at) }));
}

function createdEvent({ created_at, routing_key }: DeadLetter): TimelineEvent {
  return {
    key: "created",
    at: created_at,
    what: texts.publishedWith(routing_key),
    tone: "neutral",
    icon: "messages",
  };
}

function failureEvent(failure: FailedAttempt, index: number): TimelineEvent {
  const { attempt, error, worker, failed_at } = failure;
  return {
    key: `failed ${index}`,
    at: failed_at,
    what: texts.attemptFailed(attempt, worker),
    more: [error.type, error.message].filter(Boolean).join(": "),
    tone: "warn",
    icon: "cross",
    failure,
  };
}

function requeueEvents(requeue: Requeue, index: number): readonly TimelineEvent[] {
  const event: TimelineEvent = {
    key: `requeued ${index}`,
    at: requeue.requeued_at,
    what: texts.requeuedBy(requeue.requeued_by, requeue.queue),
    more: requeue.outcome === "in_progress" ? texts.noOutcomeYet : undefined,
    tone: "info",
    icon: "operations",
  };
  const end = ENDS[requeue.outcome];
  return end ? [event, { key: `ended ${index}`, at: requeue.ended_at, ...end }] : [event];
}

const ENDS: Record<Requeue["outcome"], Omit<TimelineEvent, "key" | "at"> | undefined> = {
  in_progress: undefined,
  failed_again: { what: texts.failedAgainEvent, tone: "bad", icon: "dead" },
  processed: { what: texts.processed, tone: "good", icon: "check" },
  duplicate: {
    what: texts.duplicate,
    more: texts.duplicateHint,
    tone: "neutral",
    icon: "info",
  },
};

function decisionEvents({
  status,
  resolved_at,
  resolved_by,
  resolution_reason,
  requeues,
  failed_at,
  reason,
  failure_count,
}: DeadLetter) {
  const decisions: TimelineEvent[] = [];
  if (!requeues.some(({ outcome, ended_at }) => outcome === "failed_again" && ended_at === failed_at)) {
    decisions.push({
      key: "dead-lettered",
      at: failed_at,
      what: texts.deadLettered(reason),
      more: texts.afterFailures(failure_count),
      tone: "bad",
      icon: "dead",
    });
  }
  if (resolved_at === null || status === "open") return decisions;
  if (status === "requeued" && requeues.some(({ requeued_at }) => near(requeued_at, resolved_at)))
    return decisions;
  decisions.push({
    key: "resolved",
    at: resolved_at,
    what: texts.decidedBy(status === "discarded", resolved_by ?? common.unknownActor),
    more: resolution_reason ?? undefined,
    tone: status === "discarded" ? "neutral" : "info",
    icon: status === "discarded" ? "trash" : "operations",
  });
  return decisions;
}

/** Whether two times belong to the same requeue. The dead letter and the history record it at slightly different times. */
function near(one: string, other: string): boolean {
  return Math.abs(new Date(one).getTime() - new Date(other).getTime()) < 1_000;
}

function secondsBetween(before: string | null | undefined, at: string | null): number | undefined {
  if (before == null || at === null) return undefined;
  return (new Date(at).getTime() - new Date(before).getTime()) / 1000;
}

function timeOf({ at }: TimelineEvent): number {
  return at === null ? Number.NEGATIVE_INFINITY : new Date(at).getTime();
}
