import { describe, expect, it } from "vitest";
import { endOf } from "./pause-end";

const NOW = Date.parse("2026-11-20T20:00:00Z");

describe("the end of a pause", () => {
  it("is none, after a while, or at a time in the zone that the person chose", () => {
    expect(endOf("", "", "utc", NOW)).toBeNull();
    expect(endOf("60", "", "utc", NOW)).toBe("2026-11-20T21:00:00.000Z");
    expect(endOf("at", "2026-11-20T22:30", "utc", NOW)).toBe("2026-11-20T22:30:00.000Z");
  });

  it("makes no sense when nothing was typed, or a time that is past", () => {
    expect(endOf("at", "", "utc", NOW)).toBeUndefined();
    expect(endOf("at", "2026-11-20T19:59", "utc", NOW)).toBeUndefined();
  });
});
