import * as texts from "~/texts/charts";
import type { Line } from "./lines";

/** What a line says at a step, in words where it says nothing. */
export function valueAt(line: Line, index: number | undefined): string {
  const value = index === undefined ? null : line.values[index];
  return value == null ? texts.notKnown : line.format(value);
}
