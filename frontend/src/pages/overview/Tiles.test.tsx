import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render, screen, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import type { Backlog } from "~/api/backlog";
import type { Component } from "~/api/overview";
import { Tiles } from "./Tiles";

const since = "2026-11-20T19:30:00.000Z";

const verdict = vi.hoisted(() => ({
  findings: [
    { code: "outbox_late", severity: "error" },
    { code: "component_lost", severity: "warning" },
  ],
  thresholds: { late_after_seconds: 60, overdue_after_seconds: 300, lost_for_seconds: 900 },
}));

vi.mock("~/api/overview", () => ({
  useOpenDeadLetters: () => ({ data: { value: 10_000, relation: "gte" }, error: null }),
  useVerdict: () => ({ data: verdict, error: null }),
  useNewDeadLetters: () => ({ data: { since, total: { value: 3, relation: "eq" } }, error: null }),
}));

const eq = (value: number) => ({ value, relation: "eq" });
const backlog = {
  complete: true,
  states: {
    pending: { value: 1_002_151, relation: "about" },
    scheduled: eq(24_922),
    held: eq(0),
    stalled: eq(0),
    blocked: eq(0),
    retrying: eq(0),
    parked: eq(2),
  },
  oldest_pending_age_seconds: 3_735.98,
  oldest_held_age_seconds: null,
  oldest_stalled_age_seconds: null,
  per_second: { incoming: 120.4, outgoing: 2_104 },
  drained_in_seconds: 505.2,
  queues: null,
} as unknown as Backlog;

const components = [
  { kind: "relay", status: "alive" },
  { kind: "relay", status: "lost", status_changed_at: since },
  { kind: "worker", status: "lost", status_changed_at: "2026-11-20T19:01:00.000Z" },
  { kind: "worker", status: "alive" },
] as Component[];

const answer = { items: components, as_of: "2026-11-20T19:40:00.000Z" };

function Shown({ backlog }: { backlog: Backlog }) {
  const query = useQuery({
    queryKey: ["components"],
    queryFn: () => answer,
    initialData: answer,
  });
  return <Tiles backlog={backlog} components={query} />;
}

function tile(name: string, changes: Partial<Backlog> = {}) {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Shown backlog={{ ...backlog, ...changes }} />
    </QueryClientProvider>,
  );
  const found = screen.getByRole("region", { name });
  const links = within(found)
    .getAllByRole("link")
    .map((link) => [link.textContent, link.getAttribute("href")]);
  return { text: found.textContent, links };
}

describe("the tiles", () => {
  it("show the age of the oldest waiting message, rate it, and link to messages in its state", () => {
    const { text, links } = tile("Oldest waiting");
    expect(text).toContain("Overdue");
    expect(text).toContain("Late after 1 min, overdue after 5 min.");
    expect(links).toEqual([["1 h 2 min", "/messages?state=pending"]]);
  });

  it("call an age that an estimate lacks not known, not zero", () => {
    const states = { ...backlog.states, pending: eq(0), held: eq(3) } as Backlog["states"];
    const { text, links } = tile("Oldest waiting", { complete: false, states });
    expect(links).toEqual([["Not known yet", "/messages?state=held"]]);
    expect(text).toContain("held");
  });

  it("link each count to the list with the same filter", () => {
    expect(tile("Backlog").links.slice(0, 3)).toEqual([
      ["≈ 1,002,151", "/messages?state=pending"],
      ["24,922 scheduled", "/messages?state=scheduled"],
      ["2 parked", "/messages?state=parked"],
    ]);
  });

  it("link new dead letters to the list since the same time", () => {
    expect(tile("Dead letters").links).toEqual([
      ["10,000+", "/dead-letters"],
      ["3 new in the last hour", `/dead-letters?view=messages&failed_after=${encodeURIComponent(since)}`],
    ]);
  });

  it("count recently lost components, not those replaced long ago", () => {
    expect(tile("Alive").text).toContain("1 lost in the last 15 min.");
  });
});
