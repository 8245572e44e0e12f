// Formats numbers, sizes, durations and times. Times are RFC 3339 text in UTC, durations are in seconds.

export type Zone = "local" | "utc";

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** `12,431`. */
export function number(value: number): string {
  return grouped.format(value);
}

export interface Counted {
  value: number;
  relation: string;
}

/** A count that may be a bound: `12,431`, `10,000+`, `≈ 9,800`. */
export function count(counted: Counted): string {
  if (counted.relation === "gte") return `${number(counted.value)}+`;
  if (counted.relation === "about") return `≈ ${number(counted.value)}`;
  return number(counted.value);
}

/** `1 message`, `2 messages`; for regular English plurals, or with the plural given. */
export function plural(value: number, noun: string, nouns = `${noun}s`): string {
  return `${number(value)} ${value === 1 ? noun : nouns}`;
}

/** Capitalizes the first letter. */
export function capitalize(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `0.4/s`, `312/s`, `1,204/s`; an em dash if unknown. */
export function rate(perSecond: number | null | undefined): string {
  if (perSecond == null) return "—";
  if (perSecond === 0) return "0/s";
  if (perSecond < 0.01) return "< 0.01/s";
  return `${perSecond < 10 ? toTrimmedFixed(perSecond, perSecond < 1 ? 2 : 1) : number(perSecond)}/s`;
}

function toTrimmedFixed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.?0+$/, "");
}

/** A duration in its two largest units: `850 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "—";
  if (seconds < 0) return `-${span(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return "< 1 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${toTrimmedFixed(seconds, 1)} s`;
  return twoLargestUnits(Math.round(seconds));
}

/** An age that ticks on screen, in whole seconds or larger units: `0 s`, `42 s`, `4 min`, `2 h 5 min`. */
export function age(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "—";
  const whole = Math.max(0, Math.floor(seconds));
  return whole < 60 ? `${whole} s` : twoLargestUnits(whole < 3600 ? whole - (whole % 60) : whole);
}

const UNITS: readonly [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

function twoLargestUnits(seconds: number): string {
  const first = UNITS.findIndex(([, length]) => seconds >= length);
  const parts: string[] = [];
  let rest = seconds;
  for (const [name, length] of UNITS.slice(first, first + 2)) {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    if (whole > 0) parts.push(`${whole} ${name}`);
  }
  return parts.join(" ");
}

/** `312 B`, `4.1 kB`, `2.6 MB`; decimal units. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 999_950) return `${toTrimmedFixed(bytes / 1_000, 1)} kB`;
  return `${toTrimmedFixed(bytes / 1_000_000, 1)} MB`;
}

/** `2026-11-20 17:26:19`, with `.478` on request; in the user's time zone. */
export function moment(iso: string, zone: Zone, milliseconds = false): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const shifted = zone === "utc" ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  const text = shifted.toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, milliseconds ? 23 : 19)}`;
}

/** Only the time of day for times of today: `17:26:19`, otherwise `2026-11-19 17:26:19`. */
export function shortMoment(iso: string, zone: Zone, now = new Date()): string {
  const whole = moment(iso, zone);
  return whole.slice(0, 10) === moment(now.toISOString(), zone).slice(0, 10) ? whole.slice(11) : whole;
}

/** Seconds since a time; negative if it is in the future. */
export function secondsSince(iso: string, now = Date.now()): number {
  return (now - new Date(iso).getTime()) / 1000;
}
