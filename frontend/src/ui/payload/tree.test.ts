import { describe, expect, it } from "vitest";
import { readJson } from "~/lib/json";
import { openAtFirst, rowsOf } from "./tree";

const many = readJson(
  JSON.stringify({ first: [1, 2], rows: Array.from({ length: 1_000 }, (_, id) => ({ id })) }),
);

describe("the rows of a tree", () => {
  it("shows everything of a small document at once", () => {
    const small = readJson('{"a": [1, {"b": null}], "c": {}}');
    expect(paths(small, openAtFirst(small))).toEqual(["0", "0/0", "0/0/0", "0/0/1", "0/0/1/0", "0/1"]);
  });

  it("leaves closed what would fill the screen", () => {
    expect(paths(many, openAtFirst(many))).toEqual(["0", "0/0", "0/0/0", "0/0/1", "0/1"]);
  });

  it("shows a hundred of many children, and as many more as are asked for", () => {
    const open = new Set(["0", "0/1"]);
    const rows = rowsOf(many, open, new Map());
    expect(rows).toHaveLength(3 + 100 + 1);
    expect(rows.at(-1)).toEqual({ more: 900, path: "0/1", depth: 2 });
    expect(rowsOf(many, open, new Map([["0/1", 600]]))).toHaveLength(3 + 600 + 1);
    expect(rowsOf(many, open, new Map([["0/1", 1_100]])).at(-1)).toMatchObject({
      path: "0/1/999",
      among: [1_000, 1_000],
    });
  });
});

function paths(root: ReturnType<typeof readJson>, open: ReadonlySet<string>): string[] {
  return rowsOf(root, open, new Map()).map(({ path }) => path);
}
