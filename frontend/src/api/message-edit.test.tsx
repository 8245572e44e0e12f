import { QueryClientProvider } from "@tanstack/react-query";
import { renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import { newQueryClient } from "./queries";

/** Keys of the requests, of which the first gets no response. */
const keys = vi.hoisted(() => {
  const keys: (string | null)[] = [];
  globalThis.fetch = async (input) => {
    keys.push((input as Request).headers.get("idempotency-key"));
    if (keys.length === 1) throw new TypeError("no response");
    return Response.json({ id: "17" });
  };
  return keys;
});

const { useMessageEdit } = await import("./waiting");

it("repeats an edit whose response was lost under its key", async () => {
  const queries = newQueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>{children}</QueryClientProvider>
  );
  const edited = vi.fn();
  const { result } = renderHook(() => useMessageEdit("17", edited), { wrapper });
  const edit = { version: 1, routing_key: "order.placed" };
  await expect(result.current.mutateAsync(edit)).rejects.toThrow();
  await result.current.mutateAsync(edit);
  expect(edited).toHaveBeenCalledTimes(1);
  const [lost, repeated] = keys;
  expect(repeated).toBe(lost);
  expect(lost).toBeTruthy();
});
