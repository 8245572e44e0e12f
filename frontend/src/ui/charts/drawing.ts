// Drawings in addition to uPlot's lines: marks that distinguish them, markers, and intervals without data.

import uPlot from "uplot";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/charts";
import { intervalsWithoutData, type Line, type Marker, markIndexes, SHAPES, type Steps } from "./lines";
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

/** Pixels between marks. */
const MARK_SPACING = 64;
/** Minimum width in pixels to label an interval without data. */
const MIN_LABEL_WIDTH = 110;

export function drawMarks(plot: uPlot, { lines, steps }: PlotData, { palette }: PlotStyle): void {
  const stepWidth = plot.bbox.width / uPlot.pxRatio / Math.max(1, steps.startsAt.length);
  const every = Math.max(1, Math.round(MARK_SPACING / stepWidth));
  for (const line of lines) {
    const shape = new Path2D(SHAPES[line.mark === "none" ? "dot" : line.mark]);
    const colour = palette.series[line.colour - 1] ?? palette.text;
    for (const index of markIndexes(line.values, line.mark === "none" ? undefined : every)) {
      drawMark(
        plot,
        shape,
        positionOf(plot, line, index),
        line.mark === "none" ? colour : palette.surface,
        colour,
      );
    }
  }
}

function positionOf(plot: uPlot, line: Line, index: number): [number, number] {
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

/** Draws a dashed line for each marker, with its name unless it would overlap the previous one. */
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
    const overflows = x + gap + width > bbox.left + bbox.width;
    const begin = overflows ? x - gap - width : x + gap;
    if (begin < free) continue;
    ctx.fillText(name, begin, bbox.top + 2 * uPlot.pxRatio);
    free = begin + width + gap;
  }
  ctx.restore();
}

/** Shades intervals without data, and labels them if there is room. */
export function drawNoData(plot: uPlot, { lines, steps }: PlotData, { palette, font }: PlotStyle): void {
  const { ctx, bbox } = plot;
  const toX = (seconds: number) => {
    const x = plot.valToPos(seconds, "x", true);
    return Math.min(bbox.left + bbox.width, Math.max(bbox.left, x));
  };
  ctx.save();
  for (const [first, last] of intervalsWithoutData(lines, steps.complete)) {
    const from = toX(steps.startsAt[first] ?? 0);
    const to = toX((steps.startsAt[last] ?? 0) + steps.step);
    ctx.fillStyle = palette.sunken;
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    if (to - from < MIN_LABEL_WIDTH * uPlot.pxRatio) continue;
    ctx.fillStyle = palette.quiet;
    ctx.font = font.replace(/^(\d+)px/, (_, size: string) => `${Number(size) * uPlot.pxRatio}px`);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(texts.noData, (from + to) / 2, bbox.top + bbox.height / 2);
  }
  ctx.restore();
}
