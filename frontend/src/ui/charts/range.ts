// Time range of charts, kept in the URL: a relative one, or an absolute one chosen with the brush.

import { choice, type Parameter } from "~/lib/url-state";
import * as texts from "~/texts/charts";

export type RelativeRange = "15m" | "1h" | "6h" | "24h" | "7d" | "30d";

export const SPANS: readonly { span: RelativeRange; label: string; seconds: number }[] = [
  { span: "15m", label: texts.range15Minutes, seconds: 900 },
  { span: "1h", label: texts.range1Hour, seconds: 3_600 },
  { span: "6h", label: texts.range6Hours, seconds: 21_600 },
  { span: "24h", label: texts.range24Hours, seconds: 86_400 },
  { span: "7d", label: texts.range7Days, seconds: 604_800 },
  { span: "30d", label: texts.range30Days, seconds: 2_592_000 },
];

/** In seconds since the epoch. */
export interface AbsoluteRange {
  from: number;
  to: number;
}

export type Range = RelativeRange | AbsoluteRange;

const MIN_SECONDS = 300;
const MAX_SECONDS = 2_592_000;
const MINUTE = 60;
/** Factor by which zooming out widens an absolute range. */
const ZOOM_OUT_FACTOR = 3;

const moment: Parameter<number | undefined> = {
  read(found) {
    const at = Date.parse(found ?? "") / 1000;
    return Number.isFinite(at) ? at : undefined;
  },
  write: (value) => (value === undefined ? null : toIso(value)),
};

/** Parameters for `useUrlState`. */
export const rangeParameters = {
  range: choice(
    SPANS.map(({ span }) => span),
    "1h",
  ),
  from: moment,
  to: moment,
};

export interface RangeValues {
  range: RelativeRange;
  from: number | undefined;
  to: number | undefined;
}

export function rangeOf({ range, from, to }: RangeValues): Range {
  return from !== undefined && to !== undefined && from < to ? { from, to } : range;
}

export function valuesOf(range: Range): Partial<RangeValues> {
  return typeof range === "string" ? { range, from: undefined, to: undefined } : range;
}

/** The period in the format of the statistics API. */
export function periodOf(range: Range): { from: string; to: string } {
  if (typeof range === "string") return { from: `-${range}`, to: "now" };
  return { from: toIso(range.from), to: toIso(range.to) };
}

/** Range selected with the brush, in whole minutes and at least five. */
export function rangeFromBrush(from: number, to: number, now: number): AbsoluteRange {
  const start = Math.floor(from / MINUTE) * MINUTE;
  const end = Math.ceil(to / MINUTE) * MINUTE;
  return end - start >= MIN_SECONDS
    ? { from: start, to: end }
    : centeredRange((start + end) / 2, MIN_SECONDS, now);
}

/** The next wider range; undefined if this is the widest. */
export function widerRange(range: Range, now: number): Range | undefined {
  if (typeof range === "string") return SPANS[SPANS.findIndex(({ span }) => span === range) + 1]?.span;
  const length = (range.to - range.from) * ZOOM_OUT_FACTOR;
  if (length > MAX_SECONDS) return "30d";
  return centeredRange((range.from + range.to) / 2, length, now);
}

function centeredRange(middle: number, length: number, now: number): AbsoluteRange {
  const end = Math.min(middle + length / 2, Math.ceil(now / MINUTE) * MINUTE);
  const to = Math.ceil(end / MINUTE) * MINUTE;
  return { from: Math.floor((to - length) / MINUTE) * MINUTE, to };
}

function toIso(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}
