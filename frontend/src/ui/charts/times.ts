// Names of chart steps.

import { moment, type Zone } from "~/lib/format";
import type { Steps } from "./lines";

const DAY = 86_400;

/** Name of a step: `20:01 – 20:02`, with the date if it is not today. */
export function stepName({ startsAt, step }: Steps, index: number, zone: Zone, now = Date.now()): string {
  const start = startsAt[index] ?? 0;
  return rangeName(start, start + step, zone, now);
}

/** Name of a time range: `20:01 – 20:02`, `2026-11-19 20:00 – 21:00`, `2026-11-19 – 2026-11-26`. */
export function rangeName(from: number, to: number, zone: Zone, now = Date.now()): string {
  const [first, last] = [minute(from, zone), minute(to, zone)];
  if (to - from >= DAY && first.time === "00:00" && last.time === "00:00")
    return `${first.day} – ${last.day}`;
  const today = moment(new Date(now).toISOString(), zone).slice(0, 10);
  const start = first.day === today && last.day === today ? first.time : `${first.day} ${first.time}`;
  return `${start} – ${last.day === first.day ? last.time : `${last.day} ${last.time}`}`;
}

function minute(seconds: number, zone: Zone): { day: string; time: string } {
  const whole = moment(new Date(seconds * 1000).toISOString(), zone);
  return { day: whole.slice(0, 10), time: whole.slice(11, 16) };
}
