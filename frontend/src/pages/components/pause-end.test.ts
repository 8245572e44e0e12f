import { describe, expect, it } from "vitest";
import { endOf } from "./pause-end";

const NOW = Date.parse("2026-11-20T20:00:00Z");

describe("the end of a pause", () => {
  it("is never, after a duration, or at a time in the chosen time zone", () => {
    expect(endOf("", "", "utc", NOW)).toBeNull();
    expect(endOf("60", "", "utc", NOW)).toBe("2026-11-20T21:00:00.000Z");
    expect(endOf("at", "2026-11-20T22:30", "utc", NOW)).toBe("2026-11-20T22:30:00.000Z");
  });

  it("is invalid for an empty field or a time in the past", () => {
    expect(endOf("at", "", "utc", NOW)).toBeUndefined();
    expect(endOf("at", "2026-11-20T19:59", "utc", NOW)).toBeUndefined();
  });
});
