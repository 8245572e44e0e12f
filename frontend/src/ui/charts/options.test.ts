import type uPlot from "uplot";
import { expect, test } from "vitest";
import type { PlotStyle } from "./drawing";
import { options } from "./options";

const LOOK = { palette: { series: [] }, zone: "utc", font: "12px sans-serif" } as unknown as PlotStyle;

function rangeOf(scale: "left" | "right", most: number): uPlot.Range.MinMax {
  const shown = () => ({ lines: [], steps: { starts: [], seconds: 60, complete: [] } }) as never;
  const { range } = options(shown, LOOK, { onPoint() {}, onBrush() {} }).scales?.[scale] ?? {};
  if (typeof range !== "function") throw new Error("the scale has no range");
  return range({} as uPlot, 0, most, scale);
}

test("parts of a second are not drawn as if they were long", () => {
  expect(rangeOf("right", 0.0004)).toEqual([0, 1]);
  expect(rangeOf("right", 100)[1]).toBeGreaterThan(100);
});

test("small numbers fill the height", () => {
  expect(rangeOf("left", 0.5)[1]).toBeCloseTo(0.56);
});
