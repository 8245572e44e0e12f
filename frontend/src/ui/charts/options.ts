// uPlot options of a chart: axes, series, cursor and drawing hooks.

import uPlot from "uplot";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/charts";
import { drawMarkers, drawMarks, drawNoData, type PlotData, type PlotStyle } from "./drawing";
import type { Line } from "./lines";

export interface PlotEvents {
  onPoint(index: number | null): void;
  onBrush(from: number, to: number): void;
}

const DASH = [5, 4];
const FILL = 0.13;
const SECONDS_INCREMENTS = [
  0.001, 0.01, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800,
  21_600, 43_200, 86_400, 172_800, 604_800,
];
const COUNT_INCREMENTS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((one) => one * 10 ** power),
).flat();

/** Plots with the same key synchronize their cursors. */
const CURSOR_SYNC_KEY = "outbox";

/** Builds the options. `getData` returns the current data, because values change while the plot stays. */
export function options(getData: () => PlotData, style: PlotStyle, events: PlotEvents): uPlot.Options {
  const { lines } = getData();
  const right = lines.find((line) => line.right);
  const left = lines.find((line) => !line.right);
  return {
    width: 300,
    height: 200,
    legend: { show: false },
    padding: [10, right ? 0 : 32, 0, 0],
    tzDate: (seconds) => {
      const at = new Date(seconds * 1000);
      return style.zone === "utc" ? uPlot.tzDate(at, "UTC") : at;
    },
    scales: { x: { time: true }, left: { range: rangeFromZero }, right: { range: rangeOfDurations } },
    series: [{}, ...lines.flatMap((line) => [seriesOf(line, style), seriesOf(line, style, true)])],
    axes: [
      timeAxis(style),
      ...(left ? [valueAxis(left, style, "left")] : []),
      ...(right ? [valueAxis(right, style, "right")] : []),
    ],
    cursor: {
      y: false,
      points: { size: 7, width: 2 },
      drag: { x: true, y: false, setScale: false },
      sync: {
        key: CURSOR_SYNC_KEY,
        filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
      },
    },
    hooks: {
      setCursor: [(plot) => events.onPoint(plot.cursor.idx ?? null)],
      setSelect: [(plot) => brush(plot, events)],
      drawAxes: [(plot) => drawNoData(plot, getData(), style)],
      draw: [(plot) => drawMarks(plot, getData(), style), (plot) => drawMarkers(plot, getData(), style)],
    },
  };
}

function rangeFromZero(_: uPlot, __: number, max: number | null): uPlot.Range.MinMax {
  return [0, max && max > 0 ? max * 1.12 : 1];
}

/** The right axis shows durations. Below one second they would look long if they filled the height. */
function rangeOfDurations(plot: uPlot, min: number, max: number | null): uPlot.Range.MinMax {
  const [from, to] = rangeFromZero(plot, min, max);
  return [from, Math.max(to ?? 0, 1)];
}

function seriesOf(line: Line, { palette }: PlotStyle, dashed = false): uPlot.Series {
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

function valueAxis(line: Line, style: PlotStyle, scale: "left" | "right"): uPlot.Axis {
  return {
    scale,
    side: scale === "left" ? 3 : 1,
    size: line.whole ? 50 : 58,
    gap: 6,
    ...(line.whole ? axisLabel(texts.messagesAxis, style) : {}),
    stroke: style.palette.quiet,
    font: style.font,
    grid: scale === "left" ? { stroke: style.palette.grid, width: 1 } : { show: false },
    ticks: { show: false },
    values: (_, splits) =>
      splits.map((split) => (split === 0 && scale === "right" ? "0" : line.format(split))),
    ...(scale === "right" ? { incrs: SECONDS_INCREMENTS } : {}),
    ...(line.whole ? { incrs: COUNT_INCREMENTS } : {}),
  };
}

/** A label next to the axis, for numbers without a unit. */
function axisLabel(label: string, { font }: PlotStyle): Partial<uPlot.Axis> {
  return { label, labelSize: 18, labelGap: 0, labelFont: font };
}

const MINUTE = 60;
const DAY = 86_400;

function timeAxis({ palette, zone, font }: PlotStyle): uPlot.Axis {
  return {
    stroke: palette.quiet,
    font,
    size: 30,
    space: 68,
    ...axisLabel(texts.timeAxis(zone), { palette, zone, font }),
    grid: { show: false },
    ticks: { stroke: palette.grid, size: 5 },
    values: (_, splits, __, ___, step) => splits.map((split) => formatTick(split, step, zone)),
  };
}

function formatTick(seconds: number, step: number, zone: Zone): string {
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
  clearSelection(plot);
  onBrush(from, to);
}

/** Removes the selection and the cursor. */
export function clearSelection(plot: uPlot): void {
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  plot.setCursor({ left: -10, top: -10 });
}
