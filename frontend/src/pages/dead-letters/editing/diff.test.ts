import { diffLines } from "diff";
import { describe, expect, it } from "vitest";
import { linesOf } from "./diff";

describe("the lines of a diff", () => {
  it("have line numbers of both sides, and omit unchanged lines far from a change", () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`);
    const after = before.with(9, "another").concat("one more");
    const lines = linesOf(diffLines(before.join("\n"), after.join("\n")));
    expect(lines[0]).toEqual({ kind: "omitted", count: 6 });
    expect(lines).toContainEqual({ kind: "removed", text: "line 10", before: 10, after: undefined });
    expect(lines).toContainEqual({ kind: "added", text: "another", before: undefined, after: 10 });
    expect(lines.at(-1)).toMatchObject({ kind: "added", text: "one more", after: 21 });
  });
});
