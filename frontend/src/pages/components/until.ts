// When a pause ends by itself, as a person chooses it.

import type { Zone } from "~/lib/format";

export const ENDS = [
  ["", "When somebody resumes it"],
  ["15", "In 15 minutes"],
  ["60", "In an hour"],
  ["240", "In 4 hours"],
  ["1440", "In a day"],
  ["at", "At a time …"],
] as const;

export type End = (typeof ENDS)[number][0];

/** The moment as RFC 3339 text, null for no end; undefined where the time that was typed makes no sense, or is past. */
export function endOf(end: End, at: string, zone: Zone, now = Date.now()): string | null | undefined {
  if (end === "") return null;
  if (end !== "at") return new Date(now + Number(end) * 60_000).toISOString();
  const moment = new Date(zone === "utc" ? `${at}Z` : at).getTime();
  return Number.isNaN(moment) || moment <= now ? undefined : new Date(moment).toISOString();
}
