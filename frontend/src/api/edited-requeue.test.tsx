import { QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import { newQueryClient } from "./queries";

/** Keys of the requests, and their answers in order; undefined is a lost response. */
const served = vi.hoisted(() => {
  const state = { keys: [] as (string | null)[], answers: [] as (object | undefined)[] };
  globalThis.fetch = async (input) => {
    state.keys.push((input as Request).headers.get("idempotency-key"));
    const answer = state.answers.shift();
    if (!answer) throw new TypeError("no response");
    return Response.json({ action: "requeue", counts: {}, items: [answer] });
  };
  return state;
});

const { useEditedRequeue } = await import("./dead-letter");

it("repeats a lost requeue of an edited dead letter under its key, and a refused one under another", async () => {
  served.answers = [
    undefined,
    { id: "17", outcome: "refused", reason: "the queue mail does not exist" },
    { id: "17", outcome: "requeued", reason: "" },
  ];
  const queries = newQueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useEditedRequeue("17"), { wrapper });
  const wanted = { edit: { version: 1, headers: "{}" }, reason: "", force: false };
  await expect(result.current.mutateAsync(wanted)).rejects.toThrow();
  await result.current.mutateAsync(wanted);
  await result.current.mutateAsync(wanted);
  await waitFor(() => expect(result.current.data?.outcome).toBe("requeued"));
  const [lost, refused, last] = served.keys;
  expect(refused).toBe(lost);
  expect(last).not.toBe(refused);
});
