import { describe, expect, it } from "vitest";
import { groupOf, pageOf } from "./actions";

const entryOf = (action: string, target: string, details: Record<string, unknown> = {}) => ({
  action,
  target,
  details,
});

describe("the link of an audit entry", () => {
  it("leads to the failure group when a group was marked, annotated or given a policy", () => {
    const group = "8f1c00d2aa31be47";
    for (const entry of [
      entryOf("dlq.mark", group),
      entryOf("dlq.policy", group),
      entryOf("dlq.note", group, { by: "fingerprint" }),
    ]) {
      expect([groupOf(entry), pageOf(entry)]).toEqual([group, `/dead-letters/groups/${group}`]);
    }
  });

  it("does not exist for a note on a queue", () => {
    const entry = entryOf("dlq.note", "mail", { by: "queue" });
    expect([groupOf(entry), pageOf(entry)]).toEqual([undefined, undefined]);
  });

  it("leads to dead letters, messages and operations by ID", () => {
    expect(pageOf(entryOf("dlq.requeue", "17"))).toBe("/dead-letters/17");
    expect(pageOf(entryOf("dlq.discard", "operation 3"))).toBe("/operations/3");
    expect(pageOf(entryOf("messages.reveal", "outbox-4"))).toBe("/messages/4");
  });
});
