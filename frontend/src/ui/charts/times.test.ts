import { describe, expect, it } from "vitest";
import { rangeName } from "./times";

const at = (moment: string) => Date.parse(moment) / 1000;
const now = Date.parse("2026-11-20T20:30:00Z");

describe("names of steps", () => {
  it("show only times for today, dates and times for other days, and only dates for whole days", () => {
    const name = (from: string, to: string) => rangeName(at(from), at(to), "utc", now);
    expect(name("2026-11-20T20:01:00Z", "2026-11-20T20:02:00Z")).toBe("20:01 – 20:02");
    expect(name("2026-11-19T20:00:00Z", "2026-11-19T21:00:00Z")).toBe("2026-11-19 20:00 – 21:00");
    expect(name("2026-11-20T18:00:00Z", "2026-11-21T00:00:00Z")).toBe("2026-11-20 18:00 – 2026-11-21 00:00");
    expect(name("2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z")).toBe("2026-11-13 – 2026-11-20");
  });
});
