import { describe, expect, it } from "vitest";
import { type Column, type Statistics, sinceFirstKnown } from "./statistics";

const nothing: Column = Array.from({ length: 10 }, () => null);
const since = (first: number): Column => nothing.map((_, index) => (index < first ? null : index));

function statistics(columns: Partial<Statistics>): Statistics {
  return {
    from: 1000,
    to: 1600,
    step: 60,
    startsAt: nothing.map((_, index) => 1000 + 60 * index),
    complete: nothing.map((_, index) => index < 9),
    stepReason: null,
    asOf: 1600,
    created: nothing,
    sent: nothing,
    processed: nothing,
    failed: nothing,
    dead: nothing,
    handling: { p50: nothing, p95: nothing, p99: nothing },
    backlog: nothing,
    oldestAge: nothing,
    ...columns,
  };
}

describe("statistics since the first step of which anything is known", () => {
  it("begin there, in every column", () => {
    const found = sinceFirstKnown(statistics({ backlog: since(3), sent: since(5) }));
    expect(found.from).toBe(1180);
    expect(found.to).toBe(1600);
    expect(found.startsAt[0]).toBe(1180);
    expect(found.backlog).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(found.sent.slice(0, 3)).toEqual([null, null, 5]);
    for (const column of [found.complete, found.created, found.handling.p99]) expect(column).toHaveLength(7);
  });

  it("have three steps at least, so that a line is seen", () => {
    expect(sinceFirstKnown(statistics({ sent: since(9) })).startsAt).toHaveLength(3);
  });

  it("are all of them if nothing is known, or the first step is", () => {
    for (const given of [statistics({}), statistics({ created: since(0) })]) {
      expect(sinceFirstKnown(given)).toBe(given);
    }
  });
});
