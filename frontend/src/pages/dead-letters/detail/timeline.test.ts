import { describe, expect, it } from "vitest";
import type { DeadLetter } from "~/api/dead-letter";
import { timelineOf } from "./timeline";

function at(second: number): string {
  return new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();
}

function letter(changes: Partial<DeadLetter>): DeadLetter {
  const failure = { type: "E", message: "no", traceback: "", attempt: 1, worker: "w", at: at(1) };
  return {
    status: "open",
    cause: "exhausted",
    routing_key: "order.placed",
    failures: 1,
    created_at: at(0),
    failed_at: at(1),
    resolved_at: null,
    resolved_by: null,
    resolution: null,
    trail: [failure],
    requeues: [],
    editions: [],
    ...changes,
  } as unknown as DeadLetter;
}

const life = {
  requeued_by: "ada",
  requeued_at: at(5),
  queue: "orders",
  ended_at: at(6),
  outcome: "failed_again",
};

describe("what happened to a dead letter", () => {
  it("is told in its order, with the time in between", () => {
    const told = timelineOf(letter({}));
    expect(told.map(({ what }) => what)).toEqual([
      "Published with routing key order.placed",
      "Attempt 1 failed on w",
      "Dead-lettered: exhausted",
    ]);
    expect(told.map(({ after }) => after)).toEqual([undefined, 1, 0]);
  });

  it("says of a requeue that it came back dead, gravely, and once", () => {
    const told = timelineOf(letter({ requeues: [life] as DeadLetter["requeues"], failed_at: at(6) }));
    expect(told.slice(-2)).toMatchObject([
      { what: "Requeued by ada to orders", tone: "info" },
      { what: "Failed again", tone: "bad", icon: "dead" },
    ]);
  });

  it("tells a requeue that the history does not know, and one that it does only once", () => {
    const resolved = { status: "requeued", resolved_at: at(5), resolved_by: "ada" } as const;
    const requeues = (changes: Partial<DeadLetter>) =>
      timelineOf(letter(changes)).filter(({ what }) => what.startsWith("Requeued")).length;
    expect(requeues(resolved)).toBe(1);
    expect(
      requeues({ ...resolved, requeues: [{ ...life, outcome: "processed" }] as DeadLetter["requeues"] }),
    ).toBe(1);
  });
});
