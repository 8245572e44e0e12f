import { describe, expect, it } from "vitest";
import { changed, read } from "~/lib/url-state";
import { brushed, periodOf, rangeOf, rangeParameters, valuesOf, wider } from "./range";

const now = Date.parse("2026-11-20T20:30:10Z") / 1000;
const at = (time: string) => Date.parse(`2026-11-20T${time}Z`) / 1000;
const inAddress = (search: string) => rangeOf(read(rangeParameters, search));

describe("ranges of charts", () => {
  it("are the last hour unless the address says another, and what makes no sense there is ignored", () => {
    expect(inAddress("")).toBe("1h");
    expect(inAddress("?range=7d")).toBe("7d");
    expect(inAddress("?range=900y&from=yesterday&to=2026-11-20T20:00:00Z")).toBe("1h");
    expect(inAddress("?from=2026-11-20T20:00:00Z&to=2026-11-20T19:00:00Z")).toBe("1h");
  });

  it("come back from the address as they were written to it", () => {
    const chosen = { from: at("20:00:00"), to: at("20:10:00") };
    const search = changed(rangeParameters, "?range=6h", valuesOf(chosen));
    expect(search).toContain("from=2026-11-20T20%3A00%3A00Z");
    expect(inAddress(search)).toEqual(chosen);
    expect(changed(rangeParameters, search, valuesOf("15m"))).toBe("?range=15m");
  });

  it("are asked for as the statistics take them", () => {
    expect(periodOf("24h")).toEqual({ from: "-24h", to: "now" });
    expect(periodOf({ from: at("20:00:00"), to: at("20:10:00") })).toEqual({
      from: "2026-11-20T20:00:00Z",
      to: "2026-11-20T20:10:00Z",
    });
  });

  it("that a brush chose are whole minutes, five at least, and not ahead of now", () => {
    expect(brushed(at("19:59:40"), at("20:09:10"), now)).toEqual({
      from: at("19:59:00"),
      to: at("20:10:00"),
    });
    expect(brushed(at("20:30:00"), at("20:30:05"), now)).toEqual({
      from: at("20:26:00"),
      to: at("20:31:00"),
    });
  });

  it("become wider step by step, up to thirty days", () => {
    expect(wider("15m", now)).toBe("1h");
    expect(wider("30d", now)).toBeUndefined();
    expect(wider({ from: at("12:00:00"), to: at("12:10:00") }, now)).toEqual({
      from: at("11:50:00"),
      to: at("12:20:00"),
    });
    expect(wider({ from: at("20:21:00"), to: at("20:31:00") }, now)).toEqual({
      from: at("20:01:00"),
      to: at("20:31:00"),
    });
    expect(wider({ from: now - 2_000_000, to: now }, now)).toBe("30d");
  });
});
