import { describe, expect, it } from "vitest";
import type { Backlog } from "~/api/backlog";
import type { Component, Finding, Verdict } from "~/api/overview";
import { perSecond } from "~/api/statistics";
import {
  countAlive,
  findingAddress,
  flow,
  isIdle,
  lastSent,
  lastSentByMinutes,
  oldestWaiting,
  toneOf,
  waitingStatus,
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
    oldest_pending_age_seconds: null,
    oldest_held_age_seconds: null,
    oldest_stalled_age_seconds: null,
    per_second: { incoming: 0, outgoing: 0 },
    drained_in_seconds: 0,
    routing_keys: [],
    other_routing_keys: { routing_key_count: 0, total: none },
    destinations: [],
    broker: "postgresql",
    broker_error: null,
    queues: [],
    ...changes,
  };
}

const some = (value: number) => ({ value, relation: "eq" }) as const;
const queue = { queue: "mail", exists: true, queued: some(3), in_flight: null, retrying: none };
const waiting = backlog({ queues: [{ ...queue, consumer_count: null, oldest_age_seconds: 1 }] });

function finding(code: Finding["code"], severity: Finding["severity"], kind = "outbox"): Finding {
  return { code, severity, summary: "", hint: "", started_at: null, subject_kind: kind, subject: "" };
}

function verdict(...findings: Finding[]): Verdict {
  return { findings } as unknown as Verdict;
}

describe("the health texts", () => {
  it("rate the oldest waiting message as the verdict does", () => {
    const waiting = { state: "held", seconds: 240 } as const;
    expect(waitingStatus(undefined, waiting).word).toBe("…");
    expect(waitingStatus(verdict(), waiting)).toEqual({ tone: "good", word: "On time" });
    expect(waitingStatus(verdict(finding("messages_held", "warning")), waiting).word).toBe("Held");
    const pending = { state: "pending", seconds: 240 } as const;
    expect(waitingStatus(verdict(finding("outbox_late", "warning")), pending).word).toBe("Late");
    expect(waitingStatus(verdict(finding("outbox_late", "error")), waiting).word).toBe("Overdue");
    expect(waitingStatus(verdict(), null).word).toBe("Nothing waiting");
    expect(waitingStatus(verdict(finding("clock_behind", "error")), null)).toEqual({
      tone: "bad",
      word: "Nothing due yet",
    });
  });

  it("show the age of held messages if they are older than pending ones", () => {
    const held = { oldest_held_age_seconds: 240, oldest_pending_age_seconds: 2 };
    expect(oldestWaiting(backlog(held, { pending: some(1), held: some(3) }))).toEqual({
      state: "held",
      seconds: 240,
    });
    expect(oldestWaiting(backlog(held, { pending: some(1) }))).toEqual({ state: "pending", seconds: 2 });
  });

  it("tolerate counts and ages that were read at different times", () => {
    expect(oldestWaiting(backlog({ oldest_pending_age_seconds: 0.2 }))).toBeNull();
    expect(oldestWaiting(backlog({}, { pending: some(1) }))?.seconds).toBe(0);
  });

  it("take no age of an estimate for zero", () => {
    const estimate = { complete: false, oldest_pending_age_seconds: 2 };
    expect(oldestWaiting(backlog(estimate, { held: some(3) }))).toEqual({ state: "held", seconds: null });
    expect(oldestWaiting(backlog(estimate, { pending: some(1), held: some(3) }))?.seconds).toBe(2);
  });

  it("take the tone of a tile from its findings", () => {
    const found = verdict(finding("dead_letters", "warning"), finding("no_relay", "error"));
    expect(toneOf(found, ["dead_letters"])).toBe("warn");
    expect(toneOf(found, ["dead_letters", "no_relay"])).toBe("bad");
    expect(toneOf(found, ["paused"])).toBe("good");
    expect(toneOf(undefined, ["paused"])).toBe("neutral");
  });

  it("count recently lost components, not those replaced long ago", () => {
    const lost = { kind: "relay", status: "lost", status_changed_at: "2026-11-20T19:30:00Z" } as Component;
    expect(countAlive([lost], "relay", "2026-11-20T19:40:00Z", 900).lost).toBe(1);
    expect(countAlive([lost], "relay", "2026-11-20T19:50:00Z", 900).lost).toBe(0);
  });

  it("link each finding to the page that shows it", () => {
    expect(findingAddress(finding("messages_stalled", "error"))).toBe("/messages?state=stalled");
    expect(findingAddress(finding("outbox_late", "error"))).toBe("/messages?state=pending");
    expect(findingAddress(finding("clock_behind", "error", "database"))).toBe("/messages?state=scheduled");
    expect(findingAddress(finding("dead_letters", "error"))).toBe("/dead-letters");
    expect(findingAddress(finding("queue_deep", "warning", "queue"))).toBe("/topology");
    expect(findingAddress(finding("component_lost", "warning", "worker"))).toBe("/components");
  });

  it("report idle only if nothing waits for workers either", () => {
    expect(isIdle(backlog())).toBe(true);
    expect(isIdle(backlog({}, { scheduled: some(5) }))).toBe(true);
    expect(isIdle(backlog({}, { retrying: some(1) }))).toBe(false);
    expect(isIdle(waiting)).toBe(false);
  });

  it("show the last send time as precisely as known", () => {
    const start = Date.parse("2026-11-20T20:05:00Z") / 1000;
    const hour = { startsAt: [start, start + 60, start + 120], step: 60, asOf: start + 303 };
    expect(lastSent("2026-11-20T20:10:00Z", "2026-11-20T20:10:03Z")).toBe("Last sent 3 s ago.");
    expect(lastSentByMinutes({ ...hour, sent: [4, 2, 0] })).toBe("Last sent about 3 min ago.");
    expect(lastSentByMinutes({ ...hour, sent: [4, 2, 1], asOf: start + 130 })).toBe(
      "Last sent less than a minute ago.",
    );
    expect(lastSentByMinutes({ ...hour, sent: [null, 0, null] })).toBe("No messages sent in the last hour.");
  });

  it("report a growing backlog only above a few seconds of work", () => {
    const speed = { incoming: 100, outgoing: 50 };
    const growing = { per_second: speed, drained_in_seconds: null };
    expect(flow(backlog(growing, { pending: some(5_000) }))).toContain("growing");
    expect(flow(backlog(growing, { pending: some(20) }))).not.toContain("growing");
    expect(flow(backlog({ per_second: speed, drained_in_seconds: 90 }, { pending: some(5_000) }))).toBe(
      "Backlog is shrinking.",
    );
    expect(flow(backlog({ per_second: speed, drained_in_seconds: 90 }, { pending: some(20) }))).toBe(
      "Backlog is small.",
    );
    expect(flow(backlog())).toBe("No traffic.");
  });

  it("divide the newest interval by its elapsed time, and omit it if it has just begun", () => {
    const startsAt = [0, 60, 120];
    expect(perSecond([60, 60, 60], { startsAt, step: 60, asOf: 150 })).toEqual([1, 1, 2]);
    expect(perSecond([60, null, 1], { startsAt, step: 60, asOf: 125 })).toEqual([1, null, null]);
  });
});
