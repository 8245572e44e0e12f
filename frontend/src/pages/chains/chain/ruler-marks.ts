// The part of the time that is in sight, how it is moved, and the marks of the ruler above it.

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

/** Nothing is drawn larger than this, in milliseconds over the whole width. */
const CLOSEST = 4;

/** Marks at round spans since `origin`, at least `apart` pixels from each other. */
export function ticks(view: Span, origin: number, width: number, apart = 90): Tick[] {
  const least = ((view.to - view.from) / Math.max(width, 1)) * apart;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const first = Math.ceil((view.from - origin) / step);
  const last = Math.floor((view.to - origin) / step);
  const marks: Tick[] = [];
  for (let index = first; index <= last; index += 1) {
    marks.push({ at: origin + index * step, label: sinceBeginning(index * step, step) });
  }
  return marks;
}

/** As exact as the step is, in two units at most: `20 ms`, `3 s 200 ms`, `2 d 6 h`; `… 3 s 200 ms` where hours precede it. */
export function sinceBeginning(offset: number, step: number): string {
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

/** The whole with a little room at both ends, so that nothing sticks to the edge. */
export function withRoom({ from, to }: Span): Span {
  const room = Math.max((to - from) * 0.02, CLOSEST / 8);
  return to - from + 2 * room < CLOSEST
    ? { from: from - CLOSEST / 8, to: from + CLOSEST * (7 / 8) }
    : { from: from - room, to: to + room };
}

/** What is in sight after a zoom by `factor` (2 shows half as much) about a point of it, 0 to 1; within `whole`. */
export function zoomed(view: Span, whole: Span, factor: number, about = 0.5): Span {
  const length = clamp(
    (view.to - view.from) / factor,
    Math.min(CLOSEST, whole.to - whole.from),
    whole.to - whole.from,
  );
  const at = view.from + (view.to - view.from) * about;
  return within({ from: at - length * about, to: at + length * (1 - about) }, whole);
}

/** What is in sight after a move by a part of it: 0.5 is half of what is seen, to the right. */
export function panned(view: Span, whole: Span, part: number): Span {
  const by = (view.to - view.from) * part;
  return within({ from: view.from + by, to: view.to + by }, whole);
}

/** Brings a span into sight, with room around it. */
export function focused(span: Span, whole: Span): Span {
  const length = Math.max((span.to - span.from) * 1.3, CLOSEST);
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
