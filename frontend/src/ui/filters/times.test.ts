import { describe, expect, it } from "vitest";
import { parseTime } from "./times";

const NOW = Date.parse("2026-11-20T17:30:00Z");

describe("parseTime", () => {
  it.each([
    ["2026-11-19 08:15", "2026-11-19T08:15:00.000Z"],
    ["2026-11-19T08:15:30.250Z", "2026-11-19T08:15:30.250Z"],
    ["2026-11-19 08:15 +02:00", "2026-11-19T06:15:00.000Z"],
    ["2026-11-19", "2026-11-19T00:00:00.000Z"],
    ["8:15", "2026-11-20T08:15:00.000Z"],
    ["08:15:30 utc", "2026-11-20T08:15:30.000Z"],
    ["45s", "2026-11-20T17:29:15.000Z"],
    ["2 hours ago", "2026-11-20T15:30:00.000Z"],
    ["3 d", "2026-11-17T17:30:00.000Z"],
  ])("reads %j", (text, moment) => {
    expect(parseTime(text, "utc", NOW)).toBe(moment);
  });

  it.each(["", "yesterday", "25:00", "2026-13-01", "12", "3 fortnights", "2026-11-19 8", "99999999999 w"])(
    "rejects %j",
    (text) => {
      expect(parseTime(text, "utc", NOW)).toBeUndefined();
    },
  );
});
