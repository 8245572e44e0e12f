import { act, renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { howMany, useSelection } from "./selection";

const shown = ["5", "4", "3", "2", "1"];

function rendered() {
  return renderHook(({ shown, scope }) => useSelection(shown, scope), {
    initialProps: { shown, scope: "a" },
  });
}

function ids(selection: ReturnType<typeof useSelection>): string[] {
  return selection.selected.kind === "some" ? [...selection.selected.ids] : ["everything"];
}

describe("a selection", () => {
  it("with shift reaches from the row touched last to this one", () => {
    const { result } = rendered();
    act(() => result.current.toggle("4"));
    act(() => result.current.toggle("2", true));
    expect(ids(result.current)).toEqual(["4", "3", "2"]);
    act(() => result.current.toggle("3"));
    expect(ids(result.current)).toEqual(["4", "2"]);
  });

  it("lasts over pages, and ends with its filter", () => {
    const { result, rerender } = rendered();
    act(() => result.current.toggle("5"));
    rerender({ shown: ["0"], scope: "a" });
    act(() => result.current.toggle("0"));
    expect(ids(result.current)).toEqual(["5", "0"]);
    rerender({ shown, scope: "b" });
    expect(ids(result.current)).toEqual([]);
  });

  it("takes the page, then everything, and one row less than everything is the page's others", () => {
    const { result } = rendered();
    act(() => result.current.togglePage());
    expect(ids(result.current)).toEqual(shown);
    act(() => result.current.selectEverything());
    expect(result.current.has("99")).toBe(true);
    expect(howMany(result.current.selected, 12_431)).toBe(12_431);
    act(() => result.current.toggle("3"));
    expect(ids(result.current)).toEqual(["5", "4", "2", "1"]);
    act(() => result.current.clear());
    expect(ids(result.current)).toEqual([]);
  });
});
