// What a chart draws in addition to uPlot's lines: marks that tell them apart, and intervals without data.

import uPlot from "uplot";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/charts";
import { type Line, type Marker, marked, SHAPES, type Steps, unknownRuns } from "./lines";
import type { Palette } from "./theme";

export interface PlotStyle {
  palette: Palette;
  zone: Zone;
  font: string;
}

export interface PlotData {
  lines: readonly Line[];
  steps: Steps;
  markers?: readonly Marker[];
}

const MARKS_APART = 64;
const WORDS = texts.noData;
/** In pixels, more than the words take. */
const ROOM_FOR_WORDS = 110;

export function drawMarks(plot: uPlot, { lines, steps }: PlotData, { palette }: PlotStyle): void {
  const perStep = plot.bbox.width / uPlot.pxRatio / Math.max(1, steps.startsAt.length);
  const every = Math.max(1, Math.round(MARKS_APART / perStep));
  for (const line of lines) {
    const shape = new Path2D(SHAPES[line.mark === "none" ? "dot" : line.mark]);
    const colour = palette.series[line.colour - 1] ?? palette.text;
    for (const index of marked(line.values, line.mark === "none" ? undefined : every)) {
      drawMark(
        plot,
        shape,
        placeOf(plot, line, index),
        line.mark === "none" ? colour : palette.surface,
        colour,
      );
    }
  }
}

function placeOf(plot: uPlot, line: Line, index: number): [number, number] {
  const x = plot.valToPos(plot.data[0]?.[index] ?? 0, "x", true);
  return [x, plot.valToPos(line.values[index] ?? 0, line.right ? "right" : "left", true)];
}

function drawMark(
  { ctx }: uPlot,
  shape: Path2D,
  [x, y]: [number, number],
  fill: string,
  stroke: string,
): void {
  ctx.save();
  ctx.setLineDash([]);
  ctx.translate(x, y);
  ctx.scale(uPlot.pxRatio, uPlot.pxRatio);
  ctx.fillStyle = fill;
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 1.5;
  ctx.fill(shape);
  ctx.stroke(shape);
  ctx.restore();
}

/** A dashed line at the time of each, and its name where it does not run into the one before. */
export function drawMarkers(
  plot: uPlot,
  { markers = [], steps }: PlotData,
  { palette, font }: PlotStyle,
): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = font.replace(/^(\d+)px/, (_, size: string) => `${Number(size) * uPlot.pxRatio}px`);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.setLineDash([3 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  ctx.strokeStyle = palette.quiet;
  ctx.fillStyle = palette.text;
  let free = bbox.left;
  for (const { at, name } of markers.toSorted((one, other) => one.at - other.at)) {
    if (at < steps.from || at > steps.to) continue;
    const x = Math.round(plot.valToPos(at, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(name).width;
    const gap = 4 * uPlot.pxRatio;
    const isAtTheEdge = x + gap + width > bbox.left + bbox.width;
    const begin = isAtTheEdge ? x - gap - width : x + gap;
    if (begin < free) continue;
    ctx.fillText(name, begin, bbox.top + 2 * uPlot.pxRatio);
    free = begin + width + gap;
  }
  ctx.restore();
}

/** Shades the time of which nothing is known, and says so where there is room. */
export function drawUnknown(plot: uPlot, { lines, steps }: PlotData, { palette, font }: PlotStyle): void {
  const { ctx, bbox } = plot;
  const place = (seconds: number) => {
    const x = plot.valToPos(seconds, "x", true);
    return Math.min(bbox.left + bbox.width, Math.max(bbox.left, x));
  };
  ctx.save();
  for (const [first, last] of unknownRuns(lines, steps.complete)) {
    const from = place(steps.startsAt[first] ?? 0);
    const to = place((steps.startsAt[last] ?? 0) + steps.step);
    ctx.fillStyle = palette.sunken;
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    if (to - from < ROOM_FOR_WORDS * uPlot.pxRatio) continue;
    ctx.fillStyle = palette.quiet;
    ctx.font = font.replace(/^(\d+)px/, (_, size: string) => `${Number(size) * uPlot.pxRatio}px`);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(WORDS, (from + to) / 2, bbox.top + bbox.height / 2);
  }
  ctx.restore();
}
