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
      destination: undefined,
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

describe("the activity of a component", () => {
  it("lists what holds it up first, then its rates and counts", () => {
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

  it("names the destination of a relay, unless it is the default one", () => {
    const relay = (destination: string) => activityOf(component({ kind: "relay" }, { destination }));
    expect(relay("kafka")).toEqual(["running", "to kafka"]);
    expect(relay("default")).toEqual(["running"]);
  });

  it("is the last report for a lost component, and empty for a stopped one", () => {
    expect(activityOf(component({ status: "lost" }, { inFlight: 3 }))).toEqual([
      "last reported: running, 3 in flight",
    ]);
    expect(activityOf(component({ status: "stopped" }))).toEqual(["Stopped cleanly"]);
  });
});

describe("the list of components", () => {
  it("sorts components that need attention first, and stopped ones last", () => {
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
