import { describe, expect, test } from "vitest";
import type { Queue } from "~/api/queues";
import { found, isTroubled, sorted, stateOf } from "./state";

const consumer = { status: "alive" } as Queue["consumers"][number];
const finding = (code: string, severity: string) => ({ code, severity }) as Queue["findings"][number];

function queue(name: string, facts: Partial<Queue> = {}): Queue {
  return {
    name,
    exists: true,
    handlers: [],
    consumers: [consumer],
    pauses: [],
    findings: [],
    ...facts,
  } as unknown as Queue;
}

describe("the state of a queue", () => {
  test("is what is worst about it", () => {
    const pause = {} as Queue["pauses"][number];
    expect(stateOf(queue("a"))).toEqual({ tone: "good", words: "OK" });
    expect(stateOf(queue("a", { consumers: [] })).words).toBe("no consumer");
    expect(stateOf(queue("a", { exists: false })).words).toBe("does not exist");
    expect(stateOf(queue("a", { pauses: [pause], findings: [finding("paused", "warning")] })).words).toBe(
      "paused",
    );
    expect(stateOf(queue("a", { pauses: [pause], findings: [finding("queue_late", "error")] }))).toEqual({
      tone: "bad",
      words: "behind",
    });
    expect(stateOf(queue("a", { findings: [finding("queue_deep", "warning")] }))).toEqual({
      tone: "warn",
      words: "deep",
    });
  });

  test("has a word also for a finding of a newer release", () => {
    expect(stateOf(queue("a", { findings: [finding("queue_on_fire", "error")] })).words).toBe(
      "queue on fire",
    );
  });
});

test("the gravest queues come first, then by name", () => {
  const late = queue("z", { findings: [finding("queue_late", "error")] });
  const names = sorted([queue("b"), queue("a"), queue("y", { consumers: [] }), late]).map(({ name }) => name);
  expect(names).toEqual(["z", "y", "a", "b"]);
  expect([queue("a"), late].filter(isTroubled)).toEqual([late]);
});

test("queues are found by parts of their names and of their handlers", () => {
  const all = [queue("billing", { handlers: ["shop.billing.charge"] }), queue("mail")];
  const names = (words: string) => found(all, words).map(({ name }) => name);
  expect(names("")).toEqual(["billing", "mail"]);
  expect(names("CHARGE bill")).toEqual(["billing"]);
  expect(names("charge mail")).toEqual([]);
});
