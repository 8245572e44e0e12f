import { act, renderHook } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { address, changed, choice, flag, maybe, read, text, useUrlState, whole } from "./url-state";

const parameters = {
  queue: text,
  status: choice(["open", "requeued", "any"], "open"),
  by: maybe(["queue", "routing_key"]),
  failures: whole(1, 100),
  facets: flag,
};

beforeEach(() => window.history.replaceState(null, "", "/outbox/ui/dead-letters"));

describe("url state", () => {
  it("reads defaults where the address says nothing, or nonsense", () => {
    const defaults = { queue: undefined, status: "open", by: undefined, failures: undefined, facets: false };
    expect(read(parameters, "")).toEqual(defaults);
    expect(read(parameters, "?queue=&status=purple&by=x&failures=1e9&facets=yes")).toEqual(defaults);
  });

  it("leaves defaults out, and keeps what it does not know", () => {
    expect(changed(parameters, "?id=17&queue=a", { status: "any", failures: 3, facets: true })).toBe(
      "?id=17&queue=a&status=any&failures=3&facets=1",
    );
    expect(changed(parameters, "?queue=a&status=any", { status: "open", queue: undefined })).toBe("");
    expect(address("/dead-letters", parameters, { queue: "a b&c" })).toBe("/dead-letters?queue=a+b%26c");
  });

  it("changes build upon the address as it is now, so that two in a row both hold", () => {
    const { result } = renderHook(() => useUrlState(parameters));
    const [, change] = result.current;
    act(() => {
      change({ queue: "billing" });
      change({ status: "any" });
    });
    expect(result.current[0]).toMatchObject({ queue: "billing", status: "any" });
  });

  it("adds an entry to the history unless told to replace it", () => {
    const { result } = renderHook(() => useUrlState(parameters));
    const before = window.history.length;
    act(() => result.current[1]({ queue: "a" }, { replace: true }));
    expect(window.history.length).toBe(before);
    act(() => result.current[1]({ queue: "b" }));
    expect(window.history.length).toBe(before + 1);
  });
});
