import { describe, expect, it } from "vitest";
import { DEFAULT_OPTIONS, errorsIn, executionOptionsOf, isTyped, requestOf, usesCanary } from "./options";

const filter = { filter: { status: "open" as const, queue: "mail" } };
const ids = { ids: ["17"] };

describe("the options of a repair", () => {
  it("allow a dry run only for valid input", () => {
    const requestFor = (options: Partial<typeof DEFAULT_OPTIONS>) =>
      requestOf({ action: "requeue", selector: filter }, { ...DEFAULT_OPTIONS, ...options });
    expect(requestFor({})).toMatchObject({ destination: undefined, maxItems: undefined, force: false });
    expect(requestFor({ where: "routing" })?.destination).toBe("original_routing");
    expect(requestFor({ where: "queue", queue: " mail.late " })?.destination).toEqual({ queue: "mail.late" });
    expect(requestFor({ where: "queue" })).toBeUndefined();
    expect(requestFor({ maxItems: "1,204" })?.maxItems).toBe(1204);
    expect(requestFor({ maxItems: "0" })).toBeUndefined();
  });

  it("use a canary for many dead letters by default", () => {
    expect(usesCanary(DEFAULT_OPTIONS, filter, 101)).toBe(true);
    expect(usesCanary(DEFAULT_OPTIONS, filter, 100)).toBe(false);
    expect(usesCanary(DEFAULT_OPTIONS, ids, 5_000)).toBe(false);
    expect(usesCanary({ ...DEFAULT_OPTIONS, canary: false }, filter, 5_000)).toBe(false);
  });

  it("convert percent to a ratio, and omit empty fields", () => {
    const typed = { ...DEFAULT_OPTIONS, stopPercent: "12.5", rate: "200", reason: "  " };
    expect(executionOptionsOf({ ...typed, startsAt: "2026-03-01T12:30" }, true, "utc")).toEqual({
      rate: 200,
      canary: { count: 10, wait_seconds: 600 },
      stopRatio: 0.125,
      startsAt: "2026-03-01T12:30:00.000Z",
      reason: undefined,
    });
    expect(executionOptionsOf(DEFAULT_OPTIONS, false, "utc")).toEqual({
      rate: undefined,
      canary: undefined,
      stopRatio: undefined,
      startsAt: undefined,
      reason: undefined,
    });
  });

  it("report errors by field", () => {
    expect(errorsIn(DEFAULT_OPTIONS, "requeue", true, "utc")).toEqual({});
    expect(
      Object.keys(errorsIn({ ...DEFAULT_OPTIONS, rate: "0", stopPercent: "101" }, "requeue", false, "utc")),
    ).toEqual(["rate", "stopPercent"]);
    expect(errorsIn({ ...DEFAULT_OPTIONS, canaryCount: "2.5" }, "requeue", true, "utc")).toHaveProperty(
      "canaryCount",
    );
    expect(errorsIn({ ...DEFAULT_OPTIONS, reason: "  " }, "purge", false, "utc")).toHaveProperty("reason");
    const startingAt = (time: number) => ({
      ...DEFAULT_OPTIONS,
      startsAt: new Date(time).toISOString().slice(0, 16),
    });
    expect(errorsIn(startingAt(Date.now() - 120_000), "requeue", false, "utc")).toHaveProperty("startsAt");
    expect(errorsIn(startingAt(Date.now()), "requeue", false, "utc")).toEqual({});
  });

  it("accept the confirmed count with or without separators, and no other number", () => {
    expect(isTyped("12,431", 12_431)).toBe(true);
    expect(isTyped(" 12 431 ", 12_431)).toBe(true);
    expect(isTyped("12431", 12_432)).toBe(false);
    expect(isTyped("", 0)).toBe(false);
  });
});
