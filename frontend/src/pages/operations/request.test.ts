import { describe, expect, it } from "vitest";
import type { Operation } from "~/api/operations";
import { isOpen, optionSentences, selectionOf, stateOf, titleOf } from "./request";

const OPTIONS = {
  destination: null,
  original_routing: false,
  rate_per_second: null,
  canary: null,
  stop_on_failure_ratio: null,
  force: false,
  starts_at: null,
  max_items: null,
};

function operation(facts: Partial<Operation>): Operation {
  const defaults = {
    id: "7",
    action: "requeue",
    state: "running",
    item_count: 1204,
    settled_count: 0,
    counts: {},
  };
  return { ...defaults, options: OPTIONS, selector: {}, ...facts } as Operation;
}

describe("an operation in words", () => {
  it("describes the options", () => {
    const options = { ...OPTIONS, destination: "mail", rate_per_second: 200, stop_on_failure_ratio: 0.1 };
    const canary = { count: 10, wait_seconds: 90 };
    expect(optionSentences(operation({ options: { ...options, canary } }))).toEqual([
      "Destination: queue mail.",
      "Maximum 200 messages/s.",
      "Canary: 10 messages, observed for up to 1 min 30 s; the rest follow unless more than 10 % of them fail.",
      "Stops at a failure rate above 10 %.",
    ]);
    const usual = optionSentences(operation({ options: { ...OPTIONS, canary } }));
    expect(usual.slice(2)).toEqual([
      "Canary: 10 messages, observed for up to 1 min 30 s; the rest follow unless one of them fails.",
      "Stops at a failure rate above 10 %.",
    ]);
    const never = operation({ options: { ...OPTIONS, stop_on_failure_ratio: 1 } });
    expect(optionSentences(never).at(-1)).toBe("Does not stop at failures.");
    expect(optionSentences(operation({ action: "discard" }))).toEqual([]);
    const some = operation({ action: "discard", options: { ...OPTIONS, max_items: 1200 } });
    expect(optionSentences(some)).toEqual(["Maximum 1,200, oldest first."]);
    expect(optionSentences(operation({}))[0]).toBe("Destination: original queue.");
  });

  it("links to the selected dead letters, whatever their status is now", () => {
    const filter = { status: "open" as const, group_id: "8f1c", failed_before: "2026-11-20T20:15:04+00:00" };
    expect(selectionOf(operation({ selector: { filter } }), "utc")).toEqual({
      kind: "filter",
      phrases: ["with status open", "of group “8f1c”", "failed before 2026-11-20 20:15:04"],
      address:
        "/dead-letters?group_id=8f1c&failed_before=2026-11-20T20%3A15%3A04%2B00%3A00&view=messages&status=any",
    });
  });

  it("names a group by its title, if known", () => {
    const found = selectionOf(
      operation({ selector: { filter: { status: "open", group_id: "8f1c" } } }),
      "utc",
      "ShopError: closed",
    );
    expect(found).toMatchObject({ phrases: ["with status open", "of group “ShopError: closed”"] });
  });

  it("lists the first of many IDs, and the total", () => {
    expect(selectionOf(operation({ selector: { ids: ["17", "outbox-4"], count: 1204 } }), "utc")).toEqual({
      kind: "ids",
      ids: ["17", "outbox-4"],
      count: 1204,
    });
  });

  it("stays open until all results are known, also after its end", () => {
    const results = { sent: 3, waiting: 0, retrying: 0, handled: 2, failed_again: 1, unknown: 0, failed: 1 };
    const ended = { state: "finished", active: false } as const;
    expect(isOpen(operation({ ...ended, results }))).toBe(false);
    expect(isOpen(operation({ ...ended, results: { ...results, waiting: 1 } }))).toBe(true);
    expect(isOpen(operation({ ...ended, action: "discard", results: null }))).toBe(false);
    expect(isOpen(operation({ active: true, results: null }))).toBe(true);
  });

  it("says that a stopped operation stopped automatically", () => {
    const stopped = operation({ state: "stopped" });
    expect([stateOf(stopped), titleOf(stopped)]).toEqual([
      "stopped automatically",
      "Requeue 1,204 dead letters",
    ]);
  });
});
