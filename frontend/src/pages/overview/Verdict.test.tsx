import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
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
const components = { items: [], as_of: "2026-11-20T20:00:03Z", pauses: [] } as unknown;

const late: Finding = {
  code: "queue_late",
  severity: "warning",
  summary: "in the queue 'mail' 3,255 messages wait, the oldest for 100 s",
  hint: "see that its worker runs",
  started_at: "2026-11-20T19:58:20Z",
  subject_kind: "queue",
  subject: "mail",
};

function renderVerdict(): void {
  render(<Verdict backlog={backlog as Backlog} components={components as LiveComponents} />);
}

beforeEach(() => {
  answer.data = { status: "ok", findings: [] };
  answer.error = null;
});

describe("the verdict", () => {
  it("shows the all-clear once the server has confirmed it", () => {
    renderVerdict();
    expect(screen.getByText("Nothing pending. Last sent 3 s ago.").closest("[data-sure]")).not.toBeNull();
  });

  it("does not show the all-clear before that", () => {
    answer.data = undefined;
    renderVerdict();
    expect(screen.getByText("Last sent 3 s ago.").closest("[data-sure]")).toBeNull();
  });

  it("removes the all-clear when the server stops responding", () => {
    answer.error = new Error("unreachable");
    renderVerdict();
    expect(screen.getByText("Last sent 3 s ago.").closest("[data-sure]")).toBeNull();
  });

  it("shows each finding with its time and a link", () => {
    answer.data = { status: "warning", findings: [late] };
    renderVerdict();
    const link = screen.getByRole("link", { name: /^In the queue 'mail' 3,255 messages wait/ });
    expect(link.getAttribute("href")).toBe("/queues?name=mail");
    expect(screen.getByRole("listitem").textContent).toMatch(/ first seen .+ ago$/);
    expect(screen.queryByText(/Nothing pending/)).toBeNull();
  });

  it("shows three of many findings of a kind, and the others on request", async () => {
    const queues = ["a", "b", "c", "d", "e"].map((subject) => ({
      ...late,
      subject,
      summary: `${subject} waits`,
    }));
    const lost: Finding = {
      ...late,
      code: "no_relay",
      summary: "no relay runs",
      subject_kind: "relay",
      subject: "",
    };
    answer.data = { status: "warning", findings: [...queues, lost] };
    renderVerdict();
    const names = () => screen.getAllByRole("link").map(({ textContent }) => textContent);
    expect(names()).toEqual(["A waits", "B waits", "C waits", "No relay runs"]);
    await userEvent.click(screen.getByRole("button", { name: "Show 2 more like these" }));
    expect(names()).toEqual(["A waits", "B waits", "C waits", "D waits", "E waits", "No relay runs"]);
    await userEvent.keyboard("{Enter}"); // the button keeps the focus
    expect(names()).toEqual(["A waits", "B waits", "C waits", "No relay runs"]);
  });

  it("shows four findings of a kind", () => {
    const queues = ["a", "b", "c", "d"].map((subject) => ({ ...late, subject }));
    answer.data = { status: "warning", findings: queues };
    renderVerdict();
    expect(screen.getAllByRole("listitem")).toHaveLength(4);
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("shows no all-clear during a pause, which has its own banner", () => {
    answer.data = { status: "warning", findings: [{ ...late, code: "paused" }] };
    renderVerdict();
    expect(screen.queryByRole("listitem")).toBeNull();
    expect(screen.queryByText(/Nothing pending/)).toBeNull();
  });

  it("shows no all-clear if the server cannot be reached", () => {
    answer.data = undefined;
    answer.error = new Error("away");
    renderVerdict();
    expect(screen.queryByText(/Last sent/)).toBeNull();
  });
});
