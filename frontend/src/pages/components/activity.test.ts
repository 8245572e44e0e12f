import { describe, expect, it } from "vitest";
import type { Component } from "~/api/components";
import { activityOf, sortedComponents, summary } from "./activity";

function component(facts: Partial<Component>, activity: Partial<Component["activity"]> = {}): Component {
  return {
    id: facts.name ?? "a",
    kind: "worker",
    name: "a",
    host: "h",
    processId: 1,
    version: "1",
    status: "alive",
    statusChangedAt: "2026-11-20T20:00:00Z",
    startedAt: "2026-11-20T20:00:00Z",
    lastHeartbeatAt: "2026-11-20T20:00:00Z",
    heartbeatIntervalSeconds: 5,
    consumers: [],
    appliedPauses: [],
    ...facts,
    activity: {
      state: "running",
      totals: {},
      perSecond: {},
      inFlight: undefined,
      unsent: undefined,
      oldestDueAgeSeconds: undefined,
      lastSentAt: undefined,
      wakesBy: undefined,
      pausedQueues: [],
      failingQueues: [],
      waitingFor: {},
      lastFailure: undefined,
      ...activity,
    },
  };
}

describe("what a component does", () => {
  it("begins with what stands in its way, then says how much it does", () => {
    const activity = {
      perSecond: { failed: 0.5, success: 15.4, rejected: 0 },
      inFlight: 3,
      failingQueues: ["mail"],
    };
    expect(activityOf(component({}, activity))).toEqual([
      "running",
      "paused consuming from mail: its handler keeps failing",
      "15/s handled",
      "0.5/s failed",
      "3 in flight",
    ]);
    expect(activityOf(component({ kind: "relay" }, { unsent: 1_200, oldestDueAgeSeconds: 250 }))).toEqual([
      "running",
      "1,200 unsent, oldest due for 4 min 10 s",
    ]);
  });

  it("of one that is lost is what it said last, and of one that ended nothing", () => {
    expect(activityOf(component({ status: "lost" }, { inFlight: 3 }))).toEqual([
      "last reported: running, 3 in flight",
    ]);
    expect(activityOf(component({ status: "stopped" }))).toEqual(["Stopped cleanly"]);
  });
});

describe("the list of components", () => {
  it("has those first that need attention, and those last that ended", () => {
    const all = [
      component({ name: "d", status: "stopped" }),
      component({ name: "c" }),
      component({ name: "b", kind: "relay" }),
      component({ name: "a", status: "late" }),
      component({ name: "e", status: "lost" }),
    ];
    expect(sortedComponents(all).map(({ name }) => name)).toEqual(["e", "a", "b", "c", "d"]);
    expect(summary(all)).toBe("1 lost, 1 late, 2 alive, 1 stopped");
  });
});
