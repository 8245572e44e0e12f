import { act, renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { useStableList } from "./stable-list";

interface Row {
  id: string;
  state: string;
}
const idOf = (row: Row) => row.id;
const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id, state: "open" }));

function rendered(first: readonly Row[] | undefined, scope = "a") {
  return renderHook(({ latest, scope }) => useStableList(latest, scope, idOf), {
    initialProps: { latest: first as readonly Row[] | undefined, scope },
  });
}

describe("useStableList", () => {
  it("keeps rows in place while new ones arrive, and shows them on request", () => {
    const { result, rerender } = rendered(rows("2", "1"));
    rerender({ latest: rows("4", "3", "2", "1"), scope: "a" });
    expect(result.current.items.map(idOf)).toEqual(["2", "1"]);
    expect(result.current.fresh).toBe(2);
    act(() => result.current.show());
    expect(result.current.items.map(idOf)).toEqual(["4", "3", "2", "1"]);
    expect(result.current.fresh).toBe(0);
  });

  it("updates rows from the latest response, and reports rows that are gone", () => {
    const { result, rerender } = rendered(rows("2", "1"));
    rerender({ latest: [{ id: "1", state: "requeued" }], scope: "a" });
    expect(result.current.items).toEqual([
      { id: "2", state: "open" },
      { id: "1", state: "requeued" },
    ]);
    expect([...result.current.gone]).toEqual(["2"]);
  });

  it("shows new rows of an empty list at once", () => {
    const { result, rerender } = rendered([]);
    rerender({ latest: rows("1"), scope: "a" });
    expect(result.current.items.map(idOf)).toEqual(["1"]);
    expect(result.current.fresh).toBe(0);
    rerender({ latest: rows("2", "1"), scope: "a" });
    expect(result.current.fresh).toBe(1);
  });

  it("shows another filter or page at once", () => {
    const { result, rerender } = rendered(rows("2", "1"));
    rerender({ latest: rows("9"), scope: "b" });
    expect(result.current.items.map(idOf)).toEqual(["9"]);
    rerender({ latest: undefined, scope: "c" });
    expect(result.current.items).toEqual([]);
    rerender({ latest: rows("7"), scope: "c" });
    expect(result.current.items.map(idOf)).toEqual(["7"]);
  });
});
