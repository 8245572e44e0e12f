import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { Router } from "wouter";
import { navigate } from "wouter/use-browser-location";

/** What was searched, and the answers, for which each search waits. */
const served = vi.hoisted(() => {
  const state = { searched: [] as string[], answers: new Map<string, Response>() };
  globalThis.fetch = async (input) => {
    const q = new URL((input as Request).url).searchParams.get("q") ?? "";
    state.searched.push(q);
    return await vi.waitUntil(() => state.answers.get(q), 30_000);
  };
  return state;
});

const { default: Search } = await import("./Search");

function renderAt(path: string) {
  window.history.replaceState(null, "", path);
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Router>
        <Search />
      </Router>
    </QueryClientProvider>,
  );
  return screen.getByRole("searchbox") as HTMLInputElement;
}

/** Answers a search with one queue of that name. */
function answer(queue: string) {
  const item = { kind: "queue", id: queue, title: queue, queue: null, detail: "" };
  served.answers.set(queue, Response.json({ items: [item], incomplete: [] }));
}

beforeEach(() => Object.assign(served, { searched: [], answers: new Map() }));

it("does not open a result of the text before while the new one is still searched", async () => {
  const field = renderAt("/search?q=mail");
  answer("mail");
  await screen.findByRole("link", { name: "mail" });
  await userEvent.clear(field);
  await userEvent.type(field, "payments");
  await waitFor(() => expect(served.searched).toContain("payments"));
  await userEvent.keyboard("{Enter}");
  expect(window.location.pathname).toBe("/search");
  answer("payments");
  await screen.findByRole("link", { name: "payments" });
  await userEvent.keyboard("{Enter}");
  expect(window.location.href).toContain("/queues?name=payments");
});

it("empties its field when the search is opened again, and fills it on the way back", async () => {
  const field = renderAt("/search?q=mail");
  expect(field.value).toBe("mail");
  act(() => navigate("/search"));
  expect(field.value).toBe("");
  act(() => window.history.back());
  await waitFor(() => expect(field.value).toBe("mail"));
});
