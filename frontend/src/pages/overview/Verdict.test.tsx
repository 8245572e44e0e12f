import { render, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Backlog } from "~/api/backlog";
import type { Living } from "~/api/overview";
import { Verdict } from "./Verdict";

type Answer = { data: unknown; error: null };
const letters = vi.hoisted(() => ({ open: {} as Answer, fresh: {} as Answer }));

vi.mock("~/api/overview", () => ({
  useOpenLetters: () => letters.open,
  useNewLetters: () => letters.fresh,
  lastSentAt: () => "2026-11-20T20:00:00Z",
}));

const eq = (value: number) => ({ value, relation: "eq" });
const states = ["pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked"].map((state) => [
  state,
  eq(0),
]);
const backlog = { states: Object.fromEntries(states), oldest_pending_seconds: null, queues: [] } as unknown;
const alive = ["relay", "worker"].map((kind) => ({ kind, condition: "alive" }));
const living = { items: alive, as_of: "2026-11-20T20:00:03Z", pauses: [] } as unknown;

function shown(): void {
  render(<Verdict backlog={backlog as Backlog} living={living as Living} />);
}

beforeEach(() => {
  letters.open = { data: eq(0), error: null };
  letters.fresh = { data: { since: "2026-11-20T19:00:00Z", total: eq(0) }, error: null };
});

describe("the verdict", () => {
  it("says that all is well once it is known that nothing has died", () => {
    shown();
    expect(screen.getByText("Nothing pending. Last sent 3 s ago.").closest("[data-sure]")).not.toBeNull();
  });

  it("is not sure before that is known", () => {
    letters.open = { data: undefined, error: null };
    shown();
    expect(screen.getByText("Nothing pending. Last sent 3 s ago.").closest("[data-sure]")).toBeNull();
  });

  it("leads to the dead letters while any is open, though messages are in time", () => {
    letters.open = { data: eq(3), error: null };
    letters.fresh = { data: { since: "", total: eq(2) }, error: null };
    shown();
    const link = screen.getByRole("link", { name: "3 dead letters are open, 2 new in the last hour." });
    expect(link.getAttribute("href")).toBe("/dead-letters");
    expect(screen.queryByText(/Nothing pending/)).toBeNull();
  });
});
