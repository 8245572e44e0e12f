import { act, renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { selectedCount, useSelection } from "./selection";

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
  it("with shift extends from the last toggled row to this one", () => {
    const { result } = rendered();
    act(() => result.current.toggle("4"));
    act(() => result.current.toggle("2", true));
    expect(ids(result.current)).toEqual(["4", "3", "2"]);
    act(() => result.current.toggle("3"));
    expect(ids(result.current)).toEqual(["4", "2"]);
  });

  it("survives page changes, and is cleared by another filter", () => {
    const { result, rerender } = rendered();
    act(() => result.current.toggle("5"));
    rerender({ shown: ["0"], scope: "a" });
    act(() => result.current.toggle("0"));
    expect(ids(result.current)).toEqual(["5", "0"]);
    rerender({ shown, scope: "b" });
    expect(ids(result.current)).toEqual([]);
  });

  it("covers the page, then everything; deselecting a row leaves the page's other rows", () => {
    const { result } = rendered();
    act(() => result.current.togglePage());
    expect(ids(result.current)).toEqual(shown);
    act(() => result.current.selectEverything());
    expect(result.current.has("99")).toBe(true);
    expect(selectedCount(result.current.selected, 12_431)).toBe(12_431);
    act(() => result.current.toggle("3"));
    expect(ids(result.current)).toEqual(["5", "4", "2", "1"]);
    act(() => result.current.clear());
    expect(ids(result.current)).toEqual([]);
  });
});
