// The choices for the end of a pause.

import type { Zone } from "~/lib/format";
import * as texts from "~/texts/components";

export const ENDS = [
  ["", texts.whenResumed],
  ["15", texts.in15Minutes],
  ["60", texts.inAnHour],
  ["240", texts.in4Hours],
  ["1440", texts.inADay],
  ["at", texts.atATime],
] as const;

export type End = (typeof ENDS)[number][0];

/** Returns the end as RFC 3339 text, null for no end, or undefined if the entered time is invalid or in the past. */
export function endOf(end: End, at: string, zone: Zone, now = Date.now()): string | null | undefined {
  if (end === "") return null;
  if (end !== "at") return new Date(now + Number(end) * 60_000).toISOString();
  const moment = new Date(zone === "utc" ? `${at}Z` : at).getTime();
  return Number.isNaN(moment) || moment <= now ? undefined : new Date(moment).toISOString();
}
