import * as texts from "~/texts/charts";
import type { Line } from "./lines";

/** Formatted value of a line at a step, or a text if there is none. */
export function valueAt(line: Line, index: number | undefined): string {
  const value = index === undefined ? null : line.values[index];
  return value == null ? texts.notKnown : line.format(value);
}
