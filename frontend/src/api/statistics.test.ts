import { describe, expect, it } from "vitest";
import { type Column, type Statistics, trimEmptyStart } from "./statistics";

const empty: Column = Array.from({ length: 10 }, () => null);
const since = (first: number): Column => empty.map((_, index) => (index < first ? null : index));

function statistics(columns: Partial<Statistics>): Statistics {
  return {
    from: 1000,
    to: 1600,
    step: 60,
    startsAt: empty.map((_, index) => 1000 + 60 * index),
    complete: empty.map((_, index) => index < 9),
    stepReason: null,
    asOf: 1600,
    created: empty,
    sent: empty,
    processed: empty,
    failed: empty,
    dead: empty,
    handling: { p50: empty, p95: empty, p99: empty },
    backlog: empty,
    oldestAge: empty,
    ...columns,
  };
}

describe("trimEmptyStart", () => {
  it("cuts every column at the first step with data", () => {
    const found = trimEmptyStart(statistics({ backlog: since(3), sent: since(5) }));
    expect(found.from).toBe(1180);
    expect(found.to).toBe(1600);
    expect(found.startsAt[0]).toBe(1180);
    expect(found.backlog).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(found.sent.slice(0, 3)).toEqual([null, null, 5]);
    for (const column of [found.complete, found.created, found.handling.p99]) expect(column).toHaveLength(7);
  });

  it("keeps at least three steps, so that a line is visible", () => {
    expect(trimEmptyStart(statistics({ sent: since(9) })).startsAt).toHaveLength(3);
  });

  it("returns the statistics unchanged without any data, or with data from the first step on", () => {
    for (const unchanged of [statistics({}), statistics({ created: since(0) })]) {
      expect(trimEmptyStart(unchanged)).toBe(unchanged);
    }
  });
});
