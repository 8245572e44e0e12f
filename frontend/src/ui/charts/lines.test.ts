import { describe, expect, it } from "vitest";
import { growing, hasGaps, type Line, marked, newestKnown, settled, unknownRuns } from "./lines";

const complete = [true, true, true, false];

function line(values: (number | null)[]): Line {
  return { name: "In", meaning: "", values, colour: 1, mark: "circle", format: String };
}

describe("lines of a chart", () => {
  it("are drawn in two parts: what is settled, and from there on what may still grow", () => {
    expect(settled([1, 2, 3, 4], complete)).toEqual([1, 2, 3, null]);
    expect(growing([1, 2, 3, 4], complete)).toEqual([null, null, 3, 4]);
    expect(growing([1, 2], [true, true])).toEqual([null, null]);
  });

  it("have marks every so often, at the newest, and where a point stands alone", () => {
    expect(marked([1, 1, 1, 1, 1, 1], 3)).toEqual([0, 3, 5]);
    expect(marked([null, null, 7, null, null, 1, 1], 100)).toEqual([2, 6]);
    expect(marked([1, null, 1, 1])).toEqual([0]);
  });

  it("are unknown where no line says anything, the newest steps aside", () => {
    const lines = [line([null, null, 0, null]), line([null, null, null, null])];
    expect(unknownRuns(lines, complete)).toEqual([[0, 1]]);
    expect(unknownRuns([line([null, 1, null, 1])], [true, true, true, true])).toEqual([
      [0, 0],
      [2, 2],
    ]);
    expect(hasGaps(lines, complete)).toBe(true);
    expect(hasGaps([line([0, 0, 0, null])], complete)).toBe(false);
  });

  it("show the newest complete step while no step is pointed at", () => {
    expect(newestKnown([line([1, 2, null, 4])], complete)).toBe(1);
    expect(newestKnown([line([null, null, null, 4])], complete)).toBe(3);
    expect(newestKnown([line([null, null, null, null])], complete)).toBeUndefined();
  });
});
