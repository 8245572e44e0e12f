import { render, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Backlog } from "~/api/backlog";
import type { Finding, LiveComponents } from "~/api/overview";
import { Verdict } from "./Verdict";

const answer = vi.hoisted(() => ({ data: undefined as unknown, error: null as Error | null }));

vi.mock("~/api/overview", () => ({
  useVerdict: () => answer,
  lastSentAt: () => "2026-11-20T20:00:00Z",
}));

const eq = (value: number) => ({ value, relation: "eq" });
const states = ["pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked"].map((state) => [
  state,
  eq(0),
]);
const backlog = { states: Object.fromEntries(states), queues: [] } as unknown;
const living = { items: [], as_of: "2026-11-20T20:00:03Z", pauses: [] } as unknown;

const late: Finding = {
  code: "queue_late",
  severity: "warning",
  summary: "in the queue 'mail' 3,255 messages wait, the oldest for 100 s",
  hint: "see that its worker runs",
  started_at: "2026-11-20T19:58:20Z",
  subject_kind: "queue",
  subject: "mail",
};

function shown(): void {
  render(<Verdict backlog={backlog as Backlog} living={living as LiveComponents} />);
}

beforeEach(() => {
  answer.data = { status: "ok", findings: [] };
  answer.error = null;
});

describe("the verdict", () => {
  it("says that all is well once the server has judged so", () => {
    shown();
    expect(screen.getByText("Nothing pending. Last sent 3 s ago.").closest("[data-sure]")).not.toBeNull();
  });

  it("says nothing about it before", () => {
    answer.data = undefined;
    shown();
    expect(screen.getByText("Last sent 3 s ago.").closest("[data-sure]")).toBeNull();
  });

  it("takes it back when the server no longer answers", () => {
    answer.error = new Error("unreachable");
    shown();
    expect(screen.getByText("Last sent 3 s ago.").closest("[data-sure]")).toBeNull();
  });

  it("tells each finding in the server's words, since when, and where to look at it", () => {
    answer.data = { status: "warning", findings: [late] };
    shown();
    const link = screen.getByRole("link", { name: /^In the queue 'mail' 3,255 messages wait/ });
    expect(link.getAttribute("href")).toBe("/queues?name=mail");
    expect(screen.getByRole("listitem").textContent).toMatch(/ since .+ ago$/);
    expect(screen.queryByText(/Nothing pending/)).toBeNull();
  });

  it("does not call well what is paused, which is told above", () => {
    answer.data = { status: "warning", findings: [{ ...late, code: "paused" }] };
    shown();
    expect(screen.queryByRole("listitem")).toBeNull();
    expect(screen.queryByText(/Nothing pending/)).toBeNull();
  });

  it("says that it is not known when the server cannot be asked", () => {
    answer.data = undefined;
    answer.error = new Error("away");
    shown();
    expect(screen.queryByText(/Last sent/)).toBeNull();
  });
});
