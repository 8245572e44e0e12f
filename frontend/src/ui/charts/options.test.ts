import type uPlot from "uplot";
import { expect, test } from "vitest";
import type { PlotStyle } from "./drawing";
import { options } from "./options";

const STYLE = { palette: { series: [] }, zone: "utc", font: "12px sans-serif" } as unknown as PlotStyle;

function rangeOf(scale: "left" | "right", max: number): uPlot.Range.MinMax {
  const getData = () => ({ lines: [], steps: { starts: [], seconds: 60, complete: [] } }) as never;
  const { range } = options(getData, STYLE, { onPoint() {}, onBrush() {} }).scales?.[scale] ?? {};
  if (typeof range !== "function") throw new Error("the scale has no range");
  return range({} as uPlot, 0, max, scale);
}

test("the right axis covers at least one second", () => {
  expect(rangeOf("right", 0.0004)).toEqual([0, 1]);
  expect(rangeOf("right", 100)[1]).toBeGreaterThan(100);
});

test("the left axis scales to small values", () => {
  expect(rangeOf("left", 0.5)[1]).toBeCloseTo(0.56);
});
