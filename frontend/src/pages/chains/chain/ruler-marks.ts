// Zooming and panning of the visible time range, and the tick marks of the ruler.

import type { Span } from "./lanes";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((days) => days * DAY),
];

export interface Tick {
  at: number;
  label: string;
}

/** The shortest visible range, in milliseconds. */
const MIN_RANGE = 4;

/** Returns marks at round times since `origin`, at least `apart` pixels from each other. */
export function ticks(view: Span, origin: number, width: number, apart = 90): Tick[] {
  const least = ((view.to - view.from) / Math.max(width, 1)) * apart;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const first = Math.ceil((view.from - origin) / step);
  const last = Math.floor((view.to - origin) / step);
  const marks: Tick[] = [];
  for (let index = first; index <= last; index += 1) {
    marks.push({ at: origin + index * step, label: offsetLabel(index * step, step) });
  }
  return marks;
}

/** Formats an offset as precisely as the step, in at most two units: `20 ms`, `3 s 200 ms`, `2 d 6 h`; `… 3 s 200 ms` if larger units are cut. */
export function offsetLabel(offset: number, step: number): string {
  if (offset === 0) return "0";
  let rest = Math.abs(offset);
  const parts: string[] = [];
  for (const [unit, length] of UNITS) {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    if (whole > 0) parts.push(`${whole} ${unit}`);
    if (step >= length && step % length === 0) break;
  }
  const shown = parts.slice(-2).join(" ");
  return `${offset < 0 ? "-" : ""}${parts.length > 2 ? "… " : ""}${shown}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", DAY],
  ["h", HOUR],
  ["min", MINUTE],
  ["s", SECOND],
  ["ms", 1],
];

/** Adds a margin at both ends, so that no bar touches the edge. */
export function withMargin({ from, to }: Span): Span {
  const room = Math.max((to - from) * 0.02, MIN_RANGE / 8);
  return to - from + 2 * room < MIN_RANGE
    ? { from: from - MIN_RANGE / 8, to: from + MIN_RANGE * (7 / 8) }
    : { from: from - room, to: to + room };
}

/** Returns the visible range after a zoom by `factor` (2 shows half as much) around a point of it, from 0 to 1. Stays within `whole`. */
export function zoomed(view: Span, whole: Span, factor: number, about = 0.5): Span {
  const length = clamp(
    (view.to - view.from) / factor,
    Math.min(MIN_RANGE, whole.to - whole.from),
    whole.to - whole.from,
  );
  const at = view.from + (view.to - view.from) * about;
  return within({ from: at - length * about, to: at + length * (1 - about) }, whole);
}

/** Returns the visible range after a move by a part of it: 0.5 is half a range to the right. */
export function panned(view: Span, whole: Span, part: number): Span {
  const by = (view.to - view.from) * part;
  return within({ from: view.from + by, to: view.to + by }, whole);
}

/** Returns the range that shows a span with a margin around it. */
export function focused(span: Span, whole: Span): Span {
  const length = Math.max((span.to - span.from) * 1.3, MIN_RANGE);
  const middle = (span.from + span.to) / 2;
  return within({ from: middle - length / 2, to: middle + length / 2 }, whole);
}

function within(view: Span, whole: Span): Span {
  const length = Math.min(view.to - view.from, whole.to - whole.from);
  const from = clamp(view.from, whole.from, whole.to - length);
  return { from, to: from + length };
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
