import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { Router } from "wouter";
import type { Outbox } from "~/api/outboxes";

vi.mock("~/lib/mount", () => ({
  api: new URL("https://host/outbox/eu/"),
  base: "/outbox/eu/ui",
  outbox: "eu",
}));
const { OutboxSwitch } = await import("./OutboxSwitch");
const { Page } = await import("./Page");

const request = vi.fn<typeof fetch>();
beforeEach(() => vi.stubGlobal("fetch", request));

function renderAt(path: string, answer: Response) {
  request.mockReset().mockResolvedValue(answer);
  window.history.replaceState(null, "", `/outbox/eu/ui${path}`);
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Router base="/outbox/eu/ui">
        <OutboxSwitch />
      </Router>
    </QueryClientProvider>,
  );
}

const ITEMS: readonly Outbox[] = [
  { name: "eu", may_enter: true, environment: { name: "production", colour: "red" } },
  { name: "us", may_enter: true, environment: null },
  { name: "asia", may_enter: false, environment: null },
];

it("links to the same page of the other outboxes, without ids and filters", async () => {
  renderAt("/dead-letters/17?status=any", Response.json({ items: ITEMS }));
  await userEvent.click(await screen.findByRole("button", { name: "Outbox eu" }));
  expect(String(request.mock.calls[0]?.[0])).toBe("https://host/outbox/outboxes");
  const links = screen.getAllByRole("link").map((link) => [link.textContent, link.getAttribute("href")]);
  expect(links).toEqual([
    ["euproduction", "https://host/outbox/eu/ui/dead-letters"],
    ["us", "https://host/outbox/us/ui/dead-letters"],
    ["asiaLog in", "https://host/outbox/asia/ui/dead-letters"],
  ]);
  expect(screen.getByRole("link", { current: true }).textContent).toContain("eu");
});

it("closes on Escape, which returns the focus, and when the focus leaves it", async () => {
  renderAt("/", Response.json({ items: ITEMS }));
  const button = await screen.findByRole("button", { name: "Outbox eu" });
  await userEvent.click(button);
  await userEvent.tab();
  expect(document.activeElement?.textContent).toContain("eu");
  await userEvent.keyboard("{Escape}");
  expect([button.getAttribute("aria-expanded"), document.activeElement]).toEqual(["false", button]);
  await userEvent.click(button);
  await userEvent.click(document.body);
  await waitFor(() => expect(button.getAttribute("aria-expanded")).toBe("false"));
});

it("shows only the name to users who are not logged in, and for the only outbox", async () => {
  renderAt("/", Response.json({ code: "unauthenticated", title: "", detail: "" }, { status: 401 }));
  await waitFor(() => expect(request).toHaveBeenCalled());
  expect(screen.getByText("eu")).toBeDefined();
  expect(screen.queryByRole("button")).toBeNull();
});

it("names the outbox in the title of the browser", () => {
  render(<Page title="Dead letters">none</Page>);
  expect(document.title).toBe("Dead letters · eu · Outbox");
});
