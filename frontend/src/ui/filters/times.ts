import type { Zone } from "~/lib/format";

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(s|sec|secs|seconds?)$/, 1_000],
  [/^(m|min|mins|minutes?)$/, 60_000],
  [/^(h|hours?)$/, 3_600_000],
  [/^(d|days?)$/, 86_400_000],
  [/^(w|weeks?)$/, 604_800_000],
];

/**
 * Parses a typed time to RFC 3339 text. Accepts `17:30` of today, `2026-11-20`, and `2026-11-20 17:30:15` in the user's time
 * zone or with an offset or `Z`, and ages: `20 min`, `3h`, `2 d ago`. Returns undefined for anything else.
 */
export function parseTime(text: string, zone: Zone, now = Date.now()): string | undefined {
  const written = text.trim().toLowerCase();
  const back = /^(\d+)\s*([a-z]+?)(?:\s+ago)?$/.exec(written);
  if (back) {
    const unit = UNITS.find(([name]) => name.test(back[2] ?? ""))?.[1];
    return unit === undefined ? undefined : iso(now - Number(back[1]) * unit);
  }
  const found =
    /^(?:(\d{4}-\d{2}-\d{2})(?:[t ]+|$))?(?:(\d{1,2}:\d{2})(:\d{2}(?:\.\d+)?)?)?\s*(z|utc|[+-]\d{2}:\d{2})?$/.exec(
      written,
    );
  const [, day, time, seconds = ":00", offset] = found ?? [];
  if (!day && !time) return undefined;
  const clock = `${(time ?? "00:00").padStart(5, "0")}${seconds}`;
  const end = offset ? (offset === "utc" ? "Z" : offset.toUpperCase()) : zone === "utc" ? "Z" : "";
  return iso(new Date(`${day ?? today(zone, now)}T${clock}${end}`).getTime());
}

function today(zone: Zone, now: number): string {
  const at = new Date(now);
  if (zone === "utc") return at.toISOString().slice(0, 10);
  return new Date(now - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

function iso(milliseconds: number): string | undefined {
  const at = new Date(milliseconds);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
