import { describe, expect, it } from "vitest";
import type { DeadLetter } from "~/api/dead-letter";
import { timelineOf } from "./timeline";

function at(second: number): string {
  return new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();
}

function deadLetter(changes: Partial<DeadLetter>): DeadLetter {
  const error = { type: "E", message: "no", traceback: null };
  const failure = { error, attempt: 1, worker: "w", failed_at: at(1) };
  return {
    status: "open",
    reason: "exhausted",
    routing_key: "order.placed",
    failure_count: 1,
    created_at: at(0),
    failed_at: at(1),
    resolved_at: null,
    resolved_by: null,
    resolution_reason: null,
    failures: [failure],
    requeues: [],
    editions: [],
    ...changes,
  } as unknown as DeadLetter;
}

const requeue = {
  requeued_by: "ada",
  requeued_at: at(5),
  queue: "orders",
  ended_at: at(6),
  outcome: "failed_again",
};

describe("the timeline of a dead letter", () => {
  it("is in order, with the time between events", () => {
    const timeline = timelineOf(deadLetter({}));
    expect(timeline.map(({ what }) => what)).toEqual([
      "Published with routing key order.placed",
      "Attempt 1 failed on w",
      "Dead-lettered: exhausted",
    ]);
    expect(timeline.map(({ after }) => after)).toEqual([undefined, 1, 0]);
  });

  it("shows once that a requeued message failed again", () => {
    const timeline = timelineOf(
      deadLetter({ requeues: [requeue] as DeadLetter["requeues"], failed_at: at(6) }),
    );
    expect(timeline.slice(-2)).toMatchObject([
      { what: "Requeued by ada to orders", tone: "info" },
      { what: "Failed again", tone: "bad", icon: "dead" },
    ]);
  });

  it("shows each requeue once, whether or not the history recorded it", () => {
    const resolved = { status: "requeued", resolved_at: at(5), resolved_by: "ada" } as const;
    const count = (changes: Partial<DeadLetter>) =>
      timelineOf(deadLetter(changes)).filter(({ what }) => what.startsWith("Requeued")).length;
    expect(count(resolved)).toBe(1);
    expect(
      count({ ...resolved, requeues: [{ ...requeue, outcome: "processed" }] as DeadLetter["requeues"] }),
    ).toBe(1);
  });
});
