import { describe, expect, it } from "vitest";
import { readJson } from "~/lib/json";
import { initiallyOpen, rowsOf } from "./tree";

const many = readJson(
  JSON.stringify({ first: [1, 2], rows: Array.from({ length: 1_000 }, (_, id) => ({ id })) }),
);

describe("the rows of a tree", () => {
  it("expands a small document completely", () => {
    const small = readJson('{"a": [1, {"b": null}], "c": {}}');
    expect(paths(small, initiallyOpen(small))).toEqual(["0", "0/0", "0/0/0", "0/0/1", "0/0/1/0", "0/1"]);
  });

  it("keeps large containers collapsed", () => {
    expect(paths(many, initiallyOpen(many))).toEqual(["0", "0/0", "0/0/0", "0/0/1", "0/1"]);
  });

  it("shows the first hundred children, and more on request", () => {
    const open = new Set(["0", "0/1"]);
    const rows = rowsOf(many, open, new Map());
    expect(rows).toHaveLength(3 + 100 + 1);
    expect(rows.at(-1)).toEqual({ more: 900, path: "0/1", depth: 2 });
    expect(rowsOf(many, open, new Map([["0/1", 600]]))).toHaveLength(3 + 600 + 1);
    expect(rowsOf(many, open, new Map([["0/1", 1_100]])).at(-1)).toMatchObject({
      path: "0/1/999",
      position: [1_000, 1_000],
    });
  });
});

function paths(root: ReturnType<typeof readJson>, open: ReadonlySet<string>): string[] {
  return rowsOf(root, open, new Map()).map(({ path }) => path);
}
