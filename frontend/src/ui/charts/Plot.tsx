// The part of a chart that needs uPlot, loaded as a separate chunk.

import { type KeyboardEvent, useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { completePoints, incompletePoints, type Line, type Marker, type Steps } from "./lines";
import { clearSelection, options } from "./options";
import styles from "./Plot.module.css";
import { usePalette } from "./theme";

export interface PlotProps {
  label: string;
  steps: Steps;
  lines: readonly Line[];
  markers: readonly Marker[];
  /** Text of a step for screen readers. */
  describeStep(index: number): string;
  at: number | undefined;
  onPoint(index: number | null): void;
  onBrush(from: number, to: number): void;
}

/** A plot with a cursor for pointer and arrow keys, and a brush that zooms. */
export function Plot({ label, steps, lines, markers, describeStep, at, onPoint, onBrush }: PlotProps) {
  const container = useRef<HTMLDivElement>(null);
  const plot = usePlot(container, { steps, lines, markers, onPoint, onBrush });
  const anchor = useRef<number | undefined>(undefined);
  const last = steps.startsAt.length - 1;
  const current = at ?? last;

  function onKeyDown(event: KeyboardEvent) {
    const to = targetIndex(event.key, current, last);
    if (to !== undefined) {
      anchor.current = event.shiftKey ? (anchor.current ?? current) : undefined;
      moveCursor(to);
    } else if (event.key === "Enter" && anchor.current !== undefined) {
      const [first, end] = sorted(anchor.current, current);
      if (plot.current) clearSelection(plot.current);
      onBrush(steps.startsAt[first] ?? steps.from, (steps.startsAt[end] ?? steps.to) + steps.step);
      anchor.current = undefined;
    } else if (event.key === "Escape" && anchor.current !== undefined) {
      anchor.current = undefined;
      moveCursor(current);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function moveCursor(to: number) {
    const shown = plot.current;
    if (!shown) return;
    const left = (index: number) => shown.valToPos(middle(steps, index), "x");
    shown.setCursor({ left: left(to), top: 1 });
    const [first, end] = sorted(anchor.current ?? to, to);
    const height = shown.over.clientHeight;
    shown.setSelect({ left: left(first), top: 0, width: left(end) - left(first), height }, false);
  }

  return (
    <div
      ref={container}
      className={styles.plot}
      role="slider"
      tabIndex={0}
      aria-label={texts.chartLabel(label)}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={current}
      aria-valuetext={describeStep(current)}
      onKeyDown={onKeyDown}
    />
  );
}

function targetIndex(key: string, current: number, last: number): number | undefined {
  if (key === "ArrowLeft") return Math.max(0, current - 1);
  if (key === "ArrowRight") return Math.min(last, current + 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return undefined;
}

function sorted(one: number, other: number): [number, number] {
  return [Math.min(one, other), Math.max(one, other)];
}

/** Values are drawn at the middle of their step. */
function middle({ startsAt, step }: Steps, index: number): number {
  return (startsAt[index] ?? 0) + step / 2;
}

function data(steps: Steps, lines: readonly Line[]): uPlot.AlignedData {
  return [
    steps.startsAt.map((_, index) => middle(steps, index)),
    ...lines.flatMap(({ values }) => [
      completePoints(values, steps.complete),
      incompletePoints(values, steps.complete),
    ]),
  ];
}

function usePlot(
  container: React.RefObject<HTMLDivElement | null>,
  shown: Omit<PlotProps, "label" | "describeStep" | "at">,
) {
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(shown);
  latest.current = shown;
  const palette = usePalette();
  const { zone } = usePreferences();
  const shape = shown.lines.map(({ name }) => name).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: different lines need a new plot; new values update this one
  useEffect(() => {
    const host = container.current;
    if (!host) return;
    const font = `12px ${getComputedStyle(host).fontFamily}`;
    const handlers = {
      onPoint: (index: number | null) => latest.current.onPoint(index),
      onBrush: (from: number, to: number) => latest.current.onBrush(from, to),
    };
    const { steps } = latest.current;
    const created = new uPlot(
      options(() => latest.current, { palette, zone, font }, handlers),
      data(steps, latest.current.lines),
      host,
    );
    plot.current = created;
    const observer = new ResizeObserver(() => fitToHost(created, host));
    observer.observe(host);
    fitToHost(created, host);
    // A canvas is not redrawn by itself when a web font finishes loading.
    void document.fonts?.ready.then(() => plot.current === created && created.redraw(false, true));
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = undefined;
    };
  }, [palette, zone, shape, container]);
  useEffect(() => {
    plot.current?.setData(data(shown.steps, shown.lines), false);
    plot.current?.setScale("x", { min: shown.steps.from, max: shown.steps.to });
  }, [shown.steps, shown.lines]);
  useEffect(() => {
    if (shown.markers) plot.current?.redraw(false);
  }, [shown.markers]);
  return plot;
}

function fitToHost(plot: uPlot, { clientWidth: width, clientHeight: height }: HTMLElement): void {
  if (width > 0 && height > 0) plot.setSize({ width, height });
}
