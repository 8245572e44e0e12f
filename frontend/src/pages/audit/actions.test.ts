import { describe, expect, it } from "vitest";
import { groupOf, pageOf } from "./actions";

const done = (action: string, target: string, details: Record<string, unknown> = {}) => ({
  action,
  target,
  details,
});

describe("where an entry of the audit log leads", () => {
  it("leads to the group, whose title is shown, where a group of failures was marked or noted", () => {
    const group = "8f1c00d2aa31be47";
    for (const entry of [
      done("dlq.mark", group),
      done("dlq.policy", group),
      done("dlq.note", group, { by: "fingerprint" }),
    ]) {
      expect([groupOf(entry), pageOf(entry)]).toEqual([group, `/dead-letters/groups/${group}`]);
    }
  });

  it("leads nowhere from a note about a queue, whose name says all", () => {
    const entry = done("dlq.note", "mail", { by: "queue" });
    expect([groupOf(entry), pageOf(entry)]).toEqual([undefined, undefined]);
  });

  it("leads to dead letters, messages and operations by their numbers", () => {
    expect(pageOf(done("dlq.requeue", "17"))).toBe("/dead-letters/17");
    expect(pageOf(done("dlq.discard", "operation 3"))).toBe("/operations/3");
    expect(pageOf(done("messages.reveal", "outbox-4"))).toBe("/messages/4");
  });
});
