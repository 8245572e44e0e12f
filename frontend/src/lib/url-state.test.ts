import { act, renderHook } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { address, changed, choice, flag, integer, maybe, read, text, useUrlState } from "./url-state";

const parameters = {
  queue: text,
  status: choice(["open", "requeued", "any"], "open"),
  by: maybe(["queue", "routing_key"]),
  failures: integer(1, 100),
  facets: flag,
};

beforeEach(() => window.history.replaceState(null, "", "/outbox/ui/dead-letters"));

describe("url state", () => {
  it("reads defaults for missing and invalid values", () => {
    const defaults = { queue: undefined, status: "open", by: undefined, failures: undefined, facets: false };
    expect(read(parameters, "")).toEqual(defaults);
    expect(read(parameters, "?queue=&status=purple&by=x&failures=1e9&facets=yes")).toEqual(defaults);
  });

  it("omits defaults, and keeps unknown parameters", () => {
    expect(changed(parameters, "?id=17&queue=a", { status: "any", failures: 3, facets: true })).toBe(
      "?id=17&queue=a&status=any&failures=3&facets=1",
    );
    expect(changed(parameters, "?queue=a&status=any", { status: "open", queue: undefined })).toBe("");
    expect(address("/dead-letters", parameters, { queue: "a b&c" })).toBe("/dead-letters?queue=a+b%26c");
  });

  it("applies two changes in a row to the current address", () => {
    const { result } = renderHook(() => useUrlState(parameters));
    const [, change] = result.current;
    act(() => {
      change({ queue: "billing" });
      change({ status: "any" });
    });
    expect(result.current[0]).toMatchObject({ queue: "billing", status: "any" });
  });

  it("adds a history entry unless asked to replace it", () => {
    const { result } = renderHook(() => useUrlState(parameters));
    const before = window.history.length;
    act(() => result.current[1]({ queue: "a" }, { replace: true }));
    expect(window.history.length).toBe(before);
    act(() => result.current[1]({ queue: "b" }));
    expect(window.history.length).toBe(before + 1);
  });
});
