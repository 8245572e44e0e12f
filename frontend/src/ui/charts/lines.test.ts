import { describe, expect, it } from "vitest";
import {
  completePoints,
  hasGaps,
  incompletePoints,
  intervalsWithoutData,
  type Line,
  latestKnownIndex,
  markIndexes,
} from "./lines";

const complete = [true, true, true, false];

function line(values: (number | null)[]): Line {
  return { name: "In", meaning: "", values, colour: 1, mark: "circle", format: String };
}

describe("lines of a chart", () => {
  it("have a solid part for complete steps, and a dashed part for incomplete ones", () => {
    expect(completePoints([1, 2, 3, 4], complete)).toEqual([1, 2, 3, null]);
    expect(incompletePoints([1, 2, 3, 4], complete)).toEqual([null, null, 3, 4]);
    expect(incompletePoints([1, 2], [true, true])).toEqual([null, null]);
  });

  it("have marks at intervals, at the latest value, and at isolated points", () => {
    expect(markIndexes([1, 1, 1, 1, 1, 1], 3)).toEqual([0, 3, 5]);
    expect(markIndexes([null, null, 7, null, null, 1, 1], 100)).toEqual([2, 6]);
    expect(markIndexes([1, null, 1, 1])).toEqual([0]);
  });

  it("have no data where every line lacks a value, except in incomplete steps", () => {
    const lines = [line([null, null, 0, null]), line([null, null, null, null])];
    expect(intervalsWithoutData(lines, complete)).toEqual([[0, 1]]);
    expect(intervalsWithoutData([line([null, 1, null, 1])], [true, true, true, true])).toEqual([
      [0, 0],
      [2, 2],
    ]);
    expect(hasGaps(lines, complete)).toBe(true);
    expect(hasGaps([line([0, 0, 0, null])], complete)).toBe(false);
  });

  it("show the latest complete step without a cursor", () => {
    expect(latestKnownIndex([line([1, 2, null, 4])], complete)).toBe(1);
    expect(latestKnownIndex([line([null, null, null, 4])], complete)).toBe(3);
    expect(latestKnownIndex([line([null, null, null, null])], complete)).toBeUndefined();
  });
});
