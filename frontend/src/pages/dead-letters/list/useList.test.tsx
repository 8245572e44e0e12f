import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import type { UrlState } from "../parameters";

/** Answers by queue and status, for which each request waits. */
const answers = vi.hoisted(() => {
  const found = new Map<string, Response>();
  globalThis.fetch = async (input) => {
    const query = new URL((input as Request).url).searchParams;
    return await vi.waitUntil(() => found.get(`${query.get("queue")} ${query.get("status")}`), 30_000);
  };
  return found;
});

const { useList } = await import("./useList");

const OPEN: UrlState = { status: "open", sort: "newest", view: "messages", queue: "mail" } as UrlState;

function answer(request: string, total: number, counts: Record<string, number>) {
  const status = Object.entries(counts).map(([value, count]) => ({ value, count }));
  const facets = { relation: "eq", as_of: new Date().toISOString(), status };
  const list = { items: [], next: null, previous: null, unarchived: null, degraded: [] };
  answers.set(request, Response.json({ ...list, total: { value: total, relation: "eq" }, facets }));
}

it("shows no count of the previous filter as that of the one that loads", async () => {
  const queries = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>{children}</QueryClientProvider>
  );
  const { result, rerender } = renderHook((state) => useList(state), { wrapper, initialProps: OPEN });
  answer("mail open", 0, { open: 0, discarded: 4 });
  await waitFor(() => expect(result.current.countOf("open")).toBe("0"));

  rerender({ ...OPEN, status: "discarded" });
  expect(result.current.matching).toBeUndefined();
  expect(result.current.countOf("discarded")).toBe("4"); // of the same dead letters, by status
  answer("mail discarded", 4, { open: 0, discarded: 4 });
  await waitFor(() => expect(result.current.matching?.value).toBe(4));

  rerender({ ...OPEN, queue: "payments" });
  expect(result.current.countOf("open")).toBeUndefined();
  answer("payments open", 37, { open: 37 });
  await waitFor(() => expect(result.current.countOf("open")).toBe("37"));
});
