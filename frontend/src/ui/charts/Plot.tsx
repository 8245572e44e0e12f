// The part of a chart that needs uPlot, in a chunk of its own.

import { type KeyboardEvent, useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { growing, type Line, type Marker, type Steps, settled } from "./lines";
import { letGo, options } from "./options";
import styles from "./Plot.module.css";
import { usePalette } from "./theme";

export interface PlotProps {
  label: string;
  steps: Steps;
  lines: readonly Line[];
  markers: readonly Marker[];
  /** What the step with this index says, for screen readers. */
  words(index: number): string;
  at: number | undefined;
  onPoint(index: number | null): void;
  onBrush(from: number, to: number): void;
}

/** A plot whose cursor follows the pointer or the arrow keys, and whose brush zooms. */
export function Plot({ label, steps, lines, markers, words, at, onPoint, onBrush }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = usePlot(place, { steps, lines, markers, onPoint, onBrush });
  const anchor = useRef<number | undefined>(undefined);
  const last = steps.startsAt.length - 1;
  const here = at ?? last;

  function heard(event: KeyboardEvent) {
    const to = target(event.key, here, last);
    if (to !== undefined) {
      anchor.current = event.shiftKey ? (anchor.current ?? here) : undefined;
      move(to);
    } else if (event.key === "Enter" && anchor.current !== undefined) {
      const [first, end] = ordered(anchor.current, here);
      if (plot.current) letGo(plot.current);
      onBrush(steps.startsAt[first] ?? steps.from, (steps.startsAt[end] ?? steps.to) + steps.step);
      anchor.current = undefined;
    } else if (event.key === "Escape" && anchor.current !== undefined) {
      anchor.current = undefined;
      move(here);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function move(to: number) {
    const shown = plot.current;
    if (!shown) return;
    const left = (index: number) => shown.valToPos(middle(steps, index), "x");
    shown.setCursor({ left: left(to), top: 1 });
    const [first, end] = ordered(anchor.current ?? to, to);
    const height = shown.over.clientHeight;
    shown.setSelect({ left: left(first), top: 0, width: left(end) - left(first), height }, false);
  }

  return (
    <div
      ref={place}
      className={styles.plot}
      role="slider"
      tabIndex={0}
      aria-label={texts.chartLabel(label)}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={here}
      aria-valuetext={words(here)}
      onKeyDown={heard}
    />
  );
}

function target(key: string, here: number, last: number): number | undefined {
  if (key === "ArrowLeft") return Math.max(0, here - 1);
  if (key === "ArrowRight") return Math.min(last, here + 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return undefined;
}

function ordered(one: number, other: number): [number, number] {
  return [Math.min(one, other), Math.max(one, other)];
}

/** What happened in a step is drawn at its middle. */
function middle({ startsAt, step }: Steps, index: number): number {
  return (startsAt[index] ?? 0) + step / 2;
}

function data(steps: Steps, lines: readonly Line[]): uPlot.AlignedData {
  return [
    steps.startsAt.map((_, index) => middle(steps, index)),
    ...lines.flatMap(({ values }) => [settled(values, steps.complete), growing(values, steps.complete)]),
  ];
}

function usePlot(
  place: React.RefObject<HTMLDivElement | null>,
  shown: Omit<PlotProps, "label" | "words" | "at">,
) {
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(shown);
  latest.current = shown;
  const palette = usePalette();
  const { zone } = usePreferences();
  const shape = shown.lines.map(({ name }) => name).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines make another plot; other values go into this one
  useEffect(() => {
    const host = place.current;
    if (!host) return;
    const font = `12px ${getComputedStyle(host).fontFamily}`;
    const heard = {
      onPoint: (index: number | null) => latest.current.onPoint(index),
      onBrush: (from: number, to: number) => latest.current.onBrush(from, to),
    };
    const { steps } = latest.current;
    const made = new uPlot(
      options(() => latest.current, { palette, zone, font }, heard),
      data(steps, latest.current.lines),
      host,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => fill(made, host));
    observer.observe(host);
    fill(made, host);
    // A font that comes later does not change by itself what is drawn.
    void document.fonts?.ready.then(() => plot.current === made && made.redraw(false, true));
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [palette, zone, shape, place]);
  useEffect(() => {
    plot.current?.setData(data(shown.steps, shown.lines), false);
    plot.current?.setScale("x", { min: shown.steps.from, max: shown.steps.to });
  }, [shown.steps, shown.lines]);
  useEffect(() => {
    if (shown.markers) plot.current?.redraw(false);
  }, [shown.markers]);
  return plot;
}

function fill(plot: uPlot, { clientWidth: width, clientHeight: height }: HTMLElement): void {
  if (width > 0 && height > 0) plot.setSize({ width, height });
}
