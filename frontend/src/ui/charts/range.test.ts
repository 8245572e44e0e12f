import { describe, expect, it } from "vitest";
import { changed, read } from "~/lib/url-state";
import { periodOf, rangeFromBrush, rangeOf, rangeParameters, valuesOf, widerRange } from "./range";

const now = Date.parse("2026-11-20T20:30:10Z") / 1000;
const at = (time: string) => Date.parse(`2026-11-20T${time}Z`) / 1000;
const fromUrl = (search: string) => rangeOf(read(rangeParameters, search));

describe("ranges of charts", () => {
  it("default to the last hour, and ignore invalid values in the URL", () => {
    expect(fromUrl("")).toBe("1h");
    expect(fromUrl("?range=7d")).toBe("7d");
    expect(fromUrl("?range=900y&from=yesterday&to=2026-11-20T20:00:00Z")).toBe("1h");
    expect(fromUrl("?from=2026-11-20T20:00:00Z&to=2026-11-20T19:00:00Z")).toBe("1h");
  });

  it("are read from the URL as they were written", () => {
    const chosen = { from: at("20:00:00"), to: at("20:10:00") };
    const search = changed(rangeParameters, "?range=6h", valuesOf(chosen));
    expect(search).toContain("from=2026-11-20T20%3A00%3A00Z");
    expect(fromUrl(search)).toEqual(chosen);
    expect(changed(rangeParameters, search, valuesOf("15m"))).toBe("?range=15m");
  });

  it("are converted to periods of the statistics API", () => {
    expect(periodOf("24h")).toEqual({ from: "-24h", to: "now" });
    expect(periodOf({ from: at("20:00:00"), to: at("20:10:00") })).toEqual({
      from: "2026-11-20T20:00:00Z",
      to: "2026-11-20T20:10:00Z",
    });
  });

  it("from a brush are whole minutes, at least five, and do not extend beyond now", () => {
    expect(rangeFromBrush(at("19:59:40"), at("20:09:10"), now)).toEqual({
      from: at("19:59:00"),
      to: at("20:10:00"),
    });
    expect(rangeFromBrush(at("20:30:00"), at("20:30:05"), now)).toEqual({
      from: at("20:26:00"),
      to: at("20:31:00"),
    });
  });

  it("widen step by step, up to 30 days", () => {
    expect(widerRange("15m", now)).toBe("1h");
    expect(widerRange("30d", now)).toBeUndefined();
    expect(widerRange({ from: at("12:00:00"), to: at("12:10:00") }, now)).toEqual({
      from: at("11:50:00"),
      to: at("12:20:00"),
    });
    expect(widerRange({ from: at("20:21:00"), to: at("20:31:00") }, now)).toEqual({
      from: at("20:01:00"),
      to: at("20:31:00"),
    });
    expect(widerRange({ from: now - 2_000_000, to: now }, now)).toBe("30d");
  });
});
