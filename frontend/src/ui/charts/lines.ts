// What a chart draws: one line for each kind of number, told apart by its mark as well as by its colour.

export type Mark = "none" | "circle" | "square" | "triangle" | "diamond";

export interface Line {
  name: string;
  /** What it counts, for the table and for those who ask: "Messages created per second". */
  meaning: string;
  values: readonly (number | null)[];
  /** Which of the theme's colours for series. */
  colour: 1 | 2 | 3 | 4 | 5;
  mark: Mark;
  filled?: boolean;
  /** The axis at the right, for what is measured in something else. */
  right?: boolean;
  /** It counts things, of which there are no halves. */
  whole?: boolean;
  format(value: number): string;
}

/** Something that happened at one time, in seconds since the epoch: a line across the chart, with its name at the top. */
export interface Marker {
  at: number;
  name: string;
}

/** Steps of one length: where each begins, in seconds since the epoch, and whether more may be told of it. */
export interface Steps {
  from: number;
  to: number;
  step: number;
  startsAt: readonly number[];
  complete: readonly boolean[];
}

/** Around 0/0, a few pixels wide; for canvas and SVG alike. */
export const SHAPES: Record<Exclude<Mark, "none"> | "dot", string> = {
  dot: "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
  circle: "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
  square: "M-3.2-3.2h6.4v6.4h-6.4z",
  triangle: "M0-4.2 4.2 3.2h-8.4z",
  diamond: "M0-4.6 4.6 0 0 4.6-4.6 0z",
};

export type Points = (number | null)[];

/** The part of a line that will not change any more. */
export function settled(values: readonly (number | null)[], complete: readonly boolean[]): Points {
  return values.map((value, index) => (complete[index] ? value : null));
}

/** The part that may still grow, from the last settled step on; drawn dashed. */
export function growing(values: readonly (number | null)[], complete: readonly boolean[]): Points {
  return values.map((value, index) => (complete[index] && (complete[index + 1] ?? true) ? null : value));
}

/** Where marks stand: every so many steps, at values between nothing, and at the newest; without `every` where no line would be. */
export function marked(values: readonly (number | null)[], every?: number): number[] {
  const known = (index: number) => values[index] !== null && values[index] !== undefined;
  const newest = values.findLastIndex((value) => value !== null);
  return values
    .map((_, index) => index)
    .filter((index) => {
      const alone = !known(index - 1) && !known(index + 1);
      const due = every !== undefined && (index % every === 0 || index === newest);
      return known(index) && (due || alone);
    });
}

export function nothingKnown(lines: readonly Line[]): boolean {
  return lines.every(({ values }) => values.every((value) => value === null));
}

/** Whether a line is broken: of some steps of which all is told nothing is known, of others something. */
export function hasGaps(lines: readonly Line[], complete: readonly boolean[]): boolean {
  return lines.some(({ values }) => {
    const settledValues = values.filter((_, index) => complete[index]);
    return settledValues.includes(null);
  });
}

/** Runs of steps of which no line knows anything: the first and the last of each. */
export function unknownRuns(lines: readonly Line[], complete: readonly boolean[]): [number, number][] {
  const runs: [number, number][] = [];
  for (const index of complete.keys()) {
    if (!complete[index] || lines.some(({ values }) => values[index] != null)) continue;
    const run = runs.at(-1);
    if (run?.[1] === index - 1) run[1] = index;
    else runs.push([index, index]);
  }
  return runs;
}

/** The step that a chart shows while no step is pointed at: the newest complete one, else the newest with data. */
export function newestKnown(lines: readonly Line[], complete: readonly boolean[]): number | undefined {
  const known = (index: number) => lines.some(({ values }) => values[index] != null);
  const all = complete.map((_, index) => index).filter(known);
  return all.findLast((index) => complete[index]) ?? all.at(-1);
}
