import { describe, expect, it } from "vitest";
import type { Backlog } from "~/api/backlog";
import type { Component } from "~/api/overview";
import {
  flow,
  isIdle,
  judged,
  LATE_AFTER,
  lastSent,
  lastSentByMinutes,
  OVERDUE_AFTER,
  oldestPending,
  perSecond,
  troubles,
} from "./health";

const none = { value: 0, relation: "eq" } as const;

function backlog(changes: Partial<Backlog> = {}, states: Partial<Backlog["states"]> = {}): Backlog {
  return {
    as_of: "2026-11-20T20:00:00Z",
    complete: true,
    degraded: [],
    states: {
      pending: none,
      scheduled: none,
      held: none,
      stalled: none,
      blocked: none,
      retrying: none,
      parked: none,
      ...states,
    },
    sent_kept: none,
    oldest_pending_seconds: null,
    per_second: { incoming: 0, outgoing: 0 },
    drained_in_seconds: 0,
    routing_keys: [],
    other_routing_keys: { routing_keys: 0, total: none },
    broker: "postgresql",
    broker_error: null,
    queues: [],
    ...changes,
  };
}

const some = (value: number) => ({ value, relation: "eq" }) as const;
const queue = { queue: "mail", exists: true, queued: some(3), in_hand: null, retrying: none };
const waiting = backlog({ queues: [{ ...queue, consumers: null, oldest_seconds: 1 }] });

function component(kind: string, condition: string): Component {
  return { kind, condition } as Component;
}

describe("what the numbers mean", () => {
  it("calls the oldest pending message late and overdue from the thresholds on", () => {
    const words = [null, LATE_AFTER - 1, LATE_AFTER, OVERDUE_AFTER].map((age) => judged(age).word);
    expect(words).toEqual(["Nothing waits", "In time", "Late", "Overdue"]);
  });

  it("takes the oldest age and the counts as one, whichever was read first", () => {
    expect(oldestPending(backlog({ oldest_pending_seconds: 0.2 }))).toBeNull();
    expect(oldestPending(backlog({}, { pending: some(1) }))).toBe(0);
  });

  it("is idle only when nothing waits for workers either", () => {
    expect(isIdle(backlog())).toBe(true);
    expect(isIdle(backlog({}, { scheduled: some(5) }))).toBe(true);
    expect(isIdle(backlog({}, { retrying: some(1) }))).toBe(false);
    expect(isIdle(waiting)).toBe(false);
  });

  it("says when something was last sent as exactly as is known", () => {
    const start = Date.parse("2026-11-20T20:05:00Z") / 1000;
    const hour = { startsAt: [start, start + 60, start + 120], step: 60, asOf: start + 303 };
    expect(lastSent("2026-11-20T20:10:00Z", "2026-11-20T20:10:03Z")).toBe("Last sent 3 s ago.");
    expect(lastSentByMinutes({ ...hour, sent: [4, 2, 0] })).toBe("Last sent about 3 min ago.");
    expect(lastSentByMinutes({ ...hour, sent: [4, 2, 1], asOf: start + 130 })).toBe(
      "Last sent less than a minute ago.",
    );
    expect(lastSentByMinutes({ ...hour, sent: [null, 0, null] })).toBe("Nothing was sent in the last hour.");
  });

  it("tells that a backlog grows only when it is worth more than seconds of work", () => {
    const speed = { incoming: 100, outgoing: 50 };
    const growing = { per_second: speed, drained_in_seconds: null };
    expect(flow(backlog(growing, { pending: some(5_000) }))).toContain("grows");
    expect(flow(backlog(growing, { pending: some(20) }))).not.toContain("grows");
    expect(flow(backlog({ per_second: speed, drained_in_seconds: 90 }, { pending: some(5_000) }))).toBe(
      "As much goes as comes.",
    );
    expect(flow(backlog())).toBe("Nothing comes, and nothing goes.");
  });

  it("divides the newest step by what is over of it, and leaves out what has hardly begun", () => {
    const startsAt = [0, 60, 120];
    expect(perSecond([60, 60, 60], { startsAt, step: 60, asOf: 150 })).toEqual([1, 1, 2]);
    expect(perSecond([60, null, 1], { startsAt, step: 60, asOf: 125 })).toEqual([1, null, null]);
  });

  it("names what is wrong, the gravest first, and where to look at it", () => {
    const found = troubles(
      backlog({ oldest_pending_seconds: 90 }, { pending: some(9), held: some(1), parked: some(2) }),
      [component("relay", "lost"), component("worker", "late")],
      { open: some(0), fresh: some(0) },
    );
    expect(found.map(({ text }) => text)).toEqual([
      "No relay is alive: nothing leaves the outbox.",
      "2 messages are parked: publishing failed for good.",
      "Late: the oldest pending message has waited for 1 min 30 s.",
      "1 message is held: no queue is bound.",
    ]);
    expect(found[1]?.href).toBe("/messages?state=parked");
    expect(troubles(backlog(), undefined, { open: undefined, fresh: undefined })).toEqual([]);
  });

  it("is not content while dead letters are open, and alarmed while new ones come", () => {
    const told = (open: number, fresh: number) =>
      troubles(backlog(), undefined, { open: some(open), fresh: some(fresh) }).map(({ tone, text }) => [
        tone,
        text,
      ]);
    expect(told(3, 2)).toEqual([["bad", "3 dead letters are open, 2 new in the last hour."]]);
    expect(told(1, 0)).toEqual([["warn", "1 dead letter is open, none new in the last hour."]]);
    expect(told(0, 0)).toEqual([]);
  });
});
