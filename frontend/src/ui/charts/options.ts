// A chart's options for uPlot: axes, how lines look, and the marks upon them.

import uPlot from "uplot";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/charts";
import { drawMarkers, drawMarks, drawUnknown, type PlotData, type PlotStyle } from "./drawing";
import type { Line } from "./lines";

export interface PlotEvents {
  onPoint(index: number | null): void;
  onBrush(from: number, to: number): void;
}

const DASH = [5, 4];
const FILL = 0.13;
const NICE_SECONDS = [
  0.001, 0.01, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800,
  21_600, 43_200, 86_400, 172_800, 604_800,
];
const NICE_COUNTS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((one) => one * 10 ** power),
).flat();

/** Plots with the same key move their cursors together. */
const TOGETHER = "outbox";

/** `shown` tells what is shown now: values change while the plot stays. */
export function options(shown: () => PlotData, look: PlotStyle, heard: PlotEvents): uPlot.Options {
  const { lines } = shown();
  const right = lines.find((line) => line.right);
  const left = lines.find((line) => !line.right);
  return {
    width: 300,
    height: 200,
    legend: { show: false },
    padding: [10, right ? 0 : 32, 0, 0],
    tzDate: (seconds) => {
      const at = new Date(seconds * 1000);
      return look.zone === "utc" ? uPlot.tzDate(at, "UTC") : at;
    },
    scales: { x: { time: true }, left: { range: fromNothing }, right: { range: fromNothingToASecond } },
    series: [{}, ...lines.flatMap((line) => [drawn(line, look), drawn(line, look, true)])],
    axes: [
      time(look),
      ...(left ? [axis(left, look, "left")] : []),
      ...(right ? [axis(right, look, "right")] : []),
    ],
    cursor: {
      y: false,
      points: { size: 7, width: 2 },
      drag: { x: true, y: false, setScale: false },
      sync: { key: TOGETHER, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
    },
    hooks: {
      setCursor: [(plot) => heard.onPoint(plot.cursor.idx ?? null)],
      setSelect: [(plot) => brush(plot, heard)],
      drawAxes: [(plot) => drawUnknown(plot, shown(), look)],
      draw: [(plot) => drawMarks(plot, shown(), look), (plot) => drawMarkers(plot, shown(), look)],
    },
  };
}

function fromNothing(_: uPlot, __: number, most: number | null): uPlot.Range.MinMax {
  return [0, most && most > 0 ? most * 1.12 : 1];
}

/** At the right are lengths of time, of which parts of a second are no height worth drawing. */
function fromNothingToASecond(plot: uPlot, least: number, most: number | null): uPlot.Range.MinMax {
  const [from, to] = fromNothing(plot, least, most);
  return [from, Math.max(to ?? 0, 1)];
}

function drawn(line: Line, { palette }: PlotStyle, dashed = false): uPlot.Series {
  const colour = palette.series[line.colour - 1] ?? palette.text;
  return {
    scale: line.right ? "right" : "left",
    stroke: colour,
    width: 2,
    points: { show: false },
    ...(line.filled ? { fill: transparent(colour) } : {}),
    ...(dashed ? { dash: DASH } : {}),
  };
}

function transparent(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${FILL})`);
}

function axis(line: Line, look: PlotStyle, scale: "left" | "right"): uPlot.Axis {
  return {
    scale,
    side: scale === "left" ? 3 : 1,
    size: line.whole ? 50 : 58,
    gap: 6,
    ...(line.whole ? named(texts.messagesAxis, look) : {}),
    stroke: look.palette.quiet,
    font: look.font,
    grid: scale === "left" ? { stroke: look.palette.grid, width: 1 } : { show: false },
    ticks: { show: false },
    values: (_, splits) =>
      splits.map((split) => (split === 0 && scale === "right" ? "0" : line.format(split))),
    ...(scale === "right" ? { incrs: NICE_SECONDS } : {}),
    ...(line.whole ? { incrs: NICE_COUNTS } : {}),
  };
}

/** A name next to the axis, for numbers that do not say what they count. */
function named(label: string, { font }: PlotStyle): Partial<uPlot.Axis> {
  return { label, labelSize: 18, labelGap: 0, labelFont: font };
}

const MINUTE = 60;
const DAY = 86_400;

function time({ palette, zone, font }: PlotStyle): uPlot.Axis {
  return {
    stroke: palette.quiet,
    font,
    size: 30,
    space: 68,
    ...named(texts.timeAxis(zone), { palette, zone, font }),
    grid: { show: false },
    ticks: { stroke: palette.grid, size: 5 },
    values: (_, splits, __, ___, step) => splits.map((split) => clock(split, step, zone)),
  };
}

function clock(seconds: number, step: number, zone: Zone): string {
  const at = new Date(seconds * 1000);
  const timeZone = zone === "utc" ? { timeZone: "UTC" } : {};
  const midnight = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...timeZone });
  if (step < MINUTE) return at.toLocaleTimeString("en-GB", timeZone);
  if (step < DAY && midnight !== "00:00") return midnight;
  return at.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...timeZone });
}

function brush(plot: uPlot, { onBrush }: PlotEvents): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  letGo(plot);
  onBrush(from, to);
}

/** Takes the selection and the cursor away. */
export function letGo(plot: uPlot): void {
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  plot.setCursor({ left: -10, top: -10 });
}
