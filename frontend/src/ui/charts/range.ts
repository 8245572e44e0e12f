// Which time charts show: the last so-and-so long, or between two moments that a brush chose. It is kept in the address.

import { choice, type Parameter } from "~/lib/url-state";
import * as texts from "~/texts/charts";

export type LastSpan = "15m" | "1h" | "6h" | "24h" | "7d" | "30d";

export const SPANS: readonly { span: LastSpan; label: string; seconds: number }[] = [
  { span: "15m", label: texts.range15Minutes, seconds: 900 },
  { span: "1h", label: texts.range1Hour, seconds: 3_600 },
  { span: "6h", label: texts.range6Hours, seconds: 21_600 },
  { span: "24h", label: texts.range24Hours, seconds: 86_400 },
  { span: "7d", label: texts.range7Days, seconds: 604_800 },
  { span: "30d", label: texts.range30Days, seconds: 2_592_000 },
];

/** In seconds since the epoch. */
export interface Between {
  from: number;
  to: number;
}

export type Range = LastSpan | Between;

const SHORTEST = 300;
const LONGEST = 2_592_000;
const MINUTE = 60;
/** How much more a step to a wider range shows. */
const WIDENING = 3;

const moment: Parameter<number | undefined> = {
  read(found) {
    const at = Date.parse(found ?? "") / 1000;
    return Number.isFinite(at) ? at : undefined;
  },
  write: (value) => (value === undefined ? null : written(value)),
};

/** For a page's `useUrlState`. */
export const rangeParameters = {
  range: choice(
    SPANS.map(({ span }) => span),
    "1h",
  ),
  from: moment,
  to: moment,
};

export interface RangeValues {
  range: LastSpan;
  from: number | undefined;
  to: number | undefined;
}

export function rangeOf({ range, from, to }: RangeValues): Range {
  return from !== undefined && to !== undefined && from < to ? { from, to } : range;
}

export function valuesOf(range: Range): Partial<RangeValues> {
  return typeof range === "string" ? { range, from: undefined, to: undefined } : range;
}

/** As the statistics take it. */
export function periodOf(range: Range): { from: string; to: string } {
  if (typeof range === "string") return { from: `-${range}`, to: "now" };
  return { from: written(range.from), to: written(range.to) };
}

/** What a brush chose, in whole minutes, and not less than could be drawn. */
export function brushed(from: number, to: number, now: number): Between {
  const start = Math.floor(from / MINUTE) * MINUTE;
  const end = Math.ceil(to / MINUTE) * MINUTE;
  return end - start >= SHORTEST ? { from: start, to: end } : around((start + end) / 2, SHORTEST, now);
}

/** The next wider range; undefined where none is. */
export function wider(range: Range, now: number): Range | undefined {
  if (typeof range === "string") return SPANS[SPANS.findIndex(({ span }) => span === range) + 1]?.span;
  const length = (range.to - range.from) * WIDENING;
  if (length > LONGEST) return "30d";
  return around((range.from + range.to) / 2, length, now);
}

function around(middle: number, length: number, now: number): Between {
  const end = Math.min(middle + length / 2, Math.ceil(now / MINUTE) * MINUTE);
  const to = Math.ceil(end / MINUTE) * MINUTE;
  return { from: Math.floor((to - length) / MINUTE) * MINUTE, to };
}

function written(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}
