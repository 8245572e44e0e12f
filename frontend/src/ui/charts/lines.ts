// Lines of a chart, distinguished by mark as well as by colour.

export type Mark = "none" | "circle" | "square" | "triangle" | "diamond";

export interface Line {
  name: string;
  /** Description: "Messages created per second". */
  meaning: string;
  values: readonly (number | null)[];
  /** Index of the theme's series colour. */
  colour: 1 | 2 | 3 | 4 | 5;
  mark: Mark;
  filled?: boolean;
  /** Uses the right axis, for another unit. */
  right?: boolean;
  /** Has only integer values. */
  whole?: boolean;
  format(value: number): string;
}

/** An event at a time in seconds since the epoch, drawn as a vertical line with its name. */
export interface Marker {
  at: number;
  name: string;
}

/** Steps of equal length: start times in seconds since the epoch, and whether each is complete. */
export interface Steps {
  from: number;
  to: number;
  step: number;
  startsAt: readonly number[];
  complete: readonly boolean[];
}

/** Paths centred on 0/0, a few pixels wide, for canvas and SVG. */
export const SHAPES: Record<Exclude<Mark, "none"> | "dot", string> = {
  dot: "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
  circle: "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
  square: "M-3.2-3.2h6.4v6.4h-6.4z",
  triangle: "M0-4.2 4.2 3.2h-8.4z",
  diamond: "M0-4.6 4.6 0 0 4.6-4.6 0z",
};

export type Points = (number | null)[];

/** The part of a line that no longer changes. */
export function completePoints(values: readonly (number | null)[], complete: readonly boolean[]): Points {
  return values.map((value, index) => (complete[index] ? value : null));
}

/** The part that may still change, drawn dashed. Starts at the last complete step, so that the two parts connect. */
export function incompletePoints(values: readonly (number | null)[], complete: readonly boolean[]): Points {
  return values.map((value, index) => (complete[index] && (complete[index + 1] ?? true) ? null : value));
}

/** Indexes of marks: every `every` steps, at the latest value, and at isolated values. Without `every`, only at isolated values, which have no line. */
export function markIndexes(values: readonly (number | null)[], every?: number): number[] {
  const known = (index: number) => values[index] !== null && values[index] !== undefined;
  const newest = values.findLastIndex((value) => value !== null);
  return values
    .map((_, index) => index)
    .filter((index) => {
      const isIsolated = !known(index - 1) && !known(index + 1);
      const isDue = every !== undefined && (index % every === 0 || index === newest);
      return known(index) && (isDue || isIsolated);
    });
}

export function hasNoData(lines: readonly Line[]): boolean {
  return lines.every(({ values }) => values.every((value) => value === null));
}

/** Whether any line lacks a value in a complete step. */
export function hasGaps(lines: readonly Line[], complete: readonly boolean[]): boolean {
  return lines.some(({ values }) => {
    const completeValues = values.filter((_, index) => complete[index]);
    return completeValues.includes(null);
  });
}

/** Intervals of complete steps without any data, as first and last index. */
export function intervalsWithoutData(
  lines: readonly Line[],
  complete: readonly boolean[],
): [number, number][] {
  const runs: [number, number][] = [];
  for (const index of complete.keys()) {
    if (!complete[index] || lines.some(({ values }) => values[index] != null)) continue;
    const run = runs.at(-1);
    if (run?.[1] === index - 1) run[1] = index;
    else runs.push([index, index]);
  }
  return runs;
}

/** Index of the step to show without a cursor: the latest complete one with data, otherwise the latest with data. */
export function latestKnownIndex(lines: readonly Line[], complete: readonly boolean[]): number | undefined {
  const known = (index: number) => lines.some(({ values }) => values[index] != null);
  const all = complete.map((_, index) => index).filter(known);
  return all.findLast((index) => complete[index]) ?? all.at(-1);
}
