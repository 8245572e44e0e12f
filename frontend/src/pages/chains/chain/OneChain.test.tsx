import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Chain } from "~/api/chains";
import OneChain from "./OneChain";
import { attempt, chain, delivery, message, wide } from "./samples";

const DEAD = delivery({
  queue: "billing",
  state: "dead",
  attempt_count: 2,
  attempts: [attempt(3, "retried"), attempt(6, "dead_lettered", 1, 2)],
});

function openChain(of: Chain, search = ""): ReturnType<typeof userEvent.setup> {
  window.history.replaceState(null, "", `/outbox/ui/chains/root${search}`);
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  queries.setQueryData(["chains", "one", "root", 500], of);
  render(
    <QueryClientProvider client={queries}>
      <OneChain id="root" />
    </QueryClientProvider>,
  );
  return userEvent.setup();
}

function parameter(name: string): string | null {
  return new URLSearchParams(window.location.search).get(name);
}

beforeEach(() => window.history.replaceState(null, "", "/outbox/ui/"));

describe("one chain", () => {
  it("moves through the tree by keyboard and shows the details of the selected message", async () => {
    const user = openChain(chain([...wide(2), message("late", "c1", { state: "dead", deliveries: [DEAD] })]));
    screen.getByRole("tree").focus();
    await user.keyboard("{End}{Enter}");
    expect(parameter("node")).toBe("late");
    const facts = screen.getByRole("region", { name: "Selected message" });
    expect(within(facts).getByText("Attempt 2")).toBeTruthy();
    expect(within(facts).getByRole("link", { name: "Dead letter" }).getAttribute("href")).toContain(
      "message_id=late",
    );
    await user.click(within(facts).getByRole("button", { name: "Close" }));
    expect(parameter("node")).toBeNull();
    expect(document.activeElement).toBe(screen.getByRole("tree"));
    await user.keyboard("{Enter}{ArrowLeft}");
    expect(parameter("node")).toBe("c1");
    await user.keyboard("{ArrowLeft}");
    expect(parameter("shut")).toBe("c1");
    expect(screen.queryByText("key.late")).toBeNull();
  });

  it("shows since when a message has been unroutable", async () => {
    const held = {
      state: "held",
      last_error: { type: "", message: "unroutable", traceback: null },
      held_at: "2026-11-20T18:30:00.000Z",
    } as const;
    const user = openChain(chain([message("root", null, held)]));
    screen.getByRole("tree").focus();
    await user.keyboard("{Enter}");
    const since = screen.getByText("Unroutable since").nextElementSibling;
    expect(since?.textContent).toContain("2026-11-20 18:30:00");
  });

  it("describes each row in text for screen readers", () => {
    const root = message("root", null, { state: "dead", deliveries: [DEAD] });
    openChain(chain([root, message("other", "root")], { critical_path: ["root"] }));
    const row = screen.getByRole("treeitem", { name: /key.root/ });
    expect(row.textContent).toContain("dead letter, took 6 s, 2 attempts, 1 effect, on the critical path");
  });

  it("expands large fan-outs and keeps that in the URL", async () => {
    const user = openChain(chain(wide(2_000)), "?view=tree");
    screen.getByRole("tree").focus();
    await user.keyboard("{End}{Enter}");
    expect(parameter("open")).toBe("root");
  });

  it("lists what it does not show", () => {
    const lost = [...wide(2), message("lost", "missing")];
    openChain(chain(lost, { truncated: true, gaps: ["the history is disabled"] }));
    const notes = screen.getByRole("list", { name: "Notes about this chain" });
    expect(notes.textContent).toContain("more than the 4 messages shown");
    expect(notes.textContent).toContain("The cause of 1 message is unknown");
    expect(notes.textContent).toContain("Not available: the history is disabled.");
  });

  it("can be shown as a sorted table", async () => {
    const messages = [
      message("root", null, { waited_seconds: 1 }),
      message("slow", "root", { waited_seconds: 9 }),
    ];
    const user = openChain(chain(messages), "?view=table");
    await user.click(screen.getByRole("button", { name: /^In the outbox/ }));
    await user.click(screen.getByRole("button", { name: /^In the outbox/ }));
    expect(screen.getAllByRole("rowheader").map(({ textContent }) => textContent)).toEqual([
      "key.slow",
      "key.root",
    ]);
    expect(parameter("down")).toBe("1");
  });
});
