import { describe, expect, it } from "vitest";
import { focused, offsetLabel, panned, ticks, withMargin, zoomed } from "./ruler-marks";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("the ruler", () => {
  it.each([
    [0, 40, 1_000, ["0", "5 ms", "10 ms", "15 ms", "20 ms", "25 ms", "30 ms", "35 ms", "40 ms"]],
    [0, 3_000, 500, ["0", "1 s", "2 s", "3 s"]],
    [0, 3 * DAY, 400, ["0", "1 d", "2 d", "3 d"]],
    [2 * HOUR, 2 * HOUR + 6_000, 400, ["2 h", "2 h 2 s", "2 h 4 s", "2 h 6 s"]],
  ])("from %d to %d ms over %d pixels has round marks that fit", (from, to, width, labels) => {
    const marks = ticks({ from, to }, 0, width);
    expect(marks.map(({ label }) => label)).toEqual(labels);
  });

  it.each([
    [90 * MINUTE, 30 * MINUTE, "1 h 30 min"],
    [3_200, 200, "3 s 200 ms"],
    [HOUR + 5 * MINUTE + 3_000, 1_000, "… 5 min 3 s"],
    [-20, 10, "-20 ms"],
    [2 * DAY, 6 * HOUR, "2 d"],
  ])("formats %d ms in steps of %d as %s", (offset, step, words) => {
    expect(offsetLabel(offset, step)).toBe(words);
  });

  it("never has more marks than fit, however long the time", () => {
    for (const to of [1, 50, 999, 61_000, DAY, 40 * DAY, 9_000 * DAY]) {
      const marks = ticks({ from: 0, to }, 0, 900);
      expect(marks.length).toBeLessThanOrEqual(11);
      expect(new Set(marks.map(({ label }) => label)).size).toBe(marks.length);
    }
  });
});

describe("zoom", () => {
  const whole = { from: 0, to: 1_000 };

  it("keeps its centre, and stays within the full range", () => {
    expect(zoomed(whole, whole, 2)).toEqual({ from: 250, to: 750 });
    expect(zoomed(whole, whole, 2, 0)).toEqual({ from: 0, to: 500 });
    expect(zoomed({ from: 250, to: 750 }, whole, 0.5)).toEqual(whole);
    expect(panned({ from: 900, to: 1_000 }, whole, 0.5)).toEqual({ from: 900, to: 1_000 });
    expect(panned({ from: 100, to: 200 }, whole, -0.25)).toEqual({ from: 75, to: 175 });
  });

  it("stops at the finest resolution, and gives an instant a width", () => {
    let view = whole;
    for (let times = 0; times < 50; times += 1) view = zoomed(view, whole, 2);
    expect(view.to - view.from).toBe(4);
    const instant = withMargin({ from: 7, to: 7 });
    expect(instant.to - instant.from).toBe(4);
    expect(focused({ from: 500, to: 500 }, whole)).toEqual({ from: 498, to: 502 });
  });
});
