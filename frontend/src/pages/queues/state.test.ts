import { expect, test } from "vitest";
import type { Queue } from "~/api/queues";
import { found, hasProblem, sorted, stateOf, versionsOf } from "./state";

const consumer = { status: "alive" } as Queue["consumers"][number];
const finding = (code: string, severity: string) => ({ code, severity }) as Queue["findings"][number];

function queue(name: string, facts: Partial<Queue> = {}): Queue {
  return {
    name,
    state: "ok",
    handlers: [],
    consumers: [consumer],
    pauses: [],
    findings: [],
    ...facts,
  } as unknown as Queue;
}

test("the tone of a state follows its most severe finding", () => {
  expect(stateOf(queue("a"))).toEqual({ tone: "good", words: "OK" });
  expect(stateOf(queue("a", { state: "missing" }))).toEqual({ tone: "bad", words: "does not exist" });
  const late = [finding("queue_late", "error"), finding("paused", "warning")];
  expect(stateOf(queue("a", { state: "behind", findings: late })).tone).toBe("bad");
  expect(stateOf(queue("a", { state: "paused", findings: [finding("paused", "warning")] })).tone).toBe(
    "warn",
  );
});

test("queues are sorted by severity, then by name", () => {
  const late = queue("z", { state: "behind", findings: [finding("queue_late", "error")] });
  const names = sorted([queue("b"), queue("a"), queue("y", { state: "no_consumer" }), late]).map(
    ({ name }) => name,
  );
  expect(names).toEqual(["z", "y", "a", "b"]);
  expect([queue("a"), late].filter(hasProblem)).toEqual([late]);
});

test("queues are found by parts of their names and handlers", () => {
  const all = [queue("billing", { handlers: ["shop.billing.charge"] }), queue("mail")];
  const names = (words: string) => found(all, words).map(({ name }) => name);
  expect(names("")).toEqual(["billing", "mail"]);
  expect(names("CHARGE bill")).toEqual(["billing"]);
  expect(names("charge mail")).toEqual([]);
});

test("a version is marked when it was first started", () => {
  const start = (version: string, started_at: string) => ({
    name: "w",
    host: "web-1",
    version: "0.2.0",
    service_version: version,
    started_at,
  });
  expect(
    versionsOf([
      start("1.3.0", "2026-11-20T12:05:00Z"),
      start("1.3.0", "2026-11-20T12:00:00Z"),
      start("1.2.0", "2026-11-19T12:00:00Z"),
    ]),
  ).toEqual([
    { at: Date.UTC(2026, 10, 20, 12) / 1000, name: "1.3.0 started" },
    { at: Date.UTC(2026, 10, 19, 12) / 1000, name: "1.2.0 started" },
  ]);
});
