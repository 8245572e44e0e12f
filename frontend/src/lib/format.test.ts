import { describe, expect, it } from "vitest";
import { age, capitalize, count, moment, number, plural, rate, shortMoment, size, span } from "./format";

describe("format", () => {
  it("groups digits, and marks lower bounds and estimates", () => {
    expect(number(12_431)).toBe("12,431");
    expect(count({ value: 10_000, relation: "gte" })).toBe("10,000+");
    expect(count({ value: 9_800, relation: "about" })).toBe("≈ 9,800");
    expect(count({ value: 3, relation: "eq" })).toBe("3");
    expect(plural(1, "message")).toBe("1 message");
    expect(plural(2_000, "entry", "entries")).toBe("2,000 entries");
  });

  it("capitalizes the first letter, and accepts empty text", () => {
    expect(capitalize("all relays")).toBe("All relays");
    expect(capitalize("")).toBe("");
  });

  it.each([
    [0, "0 s"],
    [0.0002, "< 1 ms"],
    [0.85, "850 ms"],
    [3.24, "3.2 s"],
    [9.97, "10 s"],
    [59.6, "1 min"],
    [250, "4 min 10 s"],
    [7_500, "2 h 5 min"],
    [273_600, "3 d 4 h"],
    [86_400, "1 d"],
    [86_405, "1 d"],
    [-3, "-3 s"],
  ])("formats a span of %d seconds as %s", (seconds, text) => {
    expect(span(seconds)).toBe(text);
  });

  it.each([
    [-1, "0 s"],
    [42.9, "42 s"],
    [119, "1 min"],
    [7_510, "2 h 5 min"],
  ])("formats an age of %d seconds as %s", (seconds, text) => {
    expect(age(seconds)).toBe(text);
  });

  it.each([
    [null, "—"],
    [0, "0/s"],
    [0.004, "< 0.01/s"],
    [0.4, "0.4/s"],
    [2, "2/s"],
    [1_204.4, "1,204/s"],
  ])("formats a rate of %s as %s", (perSecond, text) => {
    expect(rate(perSecond)).toBe(text);
  });

  it("formats sizes in decimal units", () => {
    expect(size(312)).toBe("312 B");
    expect(size(4_100)).toBe("4.1 kB");
    expect(size(999_960)).toBe("1 MB");
  });

  it("formats moments in the chosen zone, and shortens those of today", () => {
    expect(moment("2026-11-20T17:26:19.478Z", "utc")).toBe("2026-11-20 17:26:19");
    expect(moment("2026-11-20T17:26:19.478Z", "utc", true)).toBe("2026-11-20 17:26:19.478");
    const now = new Date("2026-11-20T20:00:00Z");
    expect(shortMoment("2026-11-20T17:26:19Z", "utc", now)).toBe("17:26:19");
    expect(shortMoment("2026-11-19T17:26:19Z", "utc", now)).toBe("2026-11-19 17:26:19");
  });
});
