import { describe, expect, it } from "vitest";
import { DEFAULT_OPTIONS, errorsIn, executionOptionsOf, isTyped, requestOf, usesCanary } from "./options";

const filter = { filter: { status: "open" as const, queue: "mail" } };
const ids = { ids: ["17"] };

describe("the options of a repair", () => {
  it("ask for a dry run only of what makes sense", () => {
    const asked = (options: Partial<typeof DEFAULT_OPTIONS>) =>
      requestOf({ action: "requeue", selector: filter }, { ...DEFAULT_OPTIONS, ...options });
    expect(asked({})).toMatchObject({ destination: undefined, maxItems: undefined, force: false });
    expect(asked({ where: "routing" })?.destination).toBe("original_routing");
    expect(asked({ where: "queue", queue: " mail.late " })?.destination).toEqual({ queue: "mail.late" });
    expect(asked({ where: "queue" })).toBeUndefined();
    expect(asked({ maxItems: "1,204" })?.maxItems).toBe(1204);
    expect(asked({ maxItems: "0" })).toBeUndefined();
  });

  it("send some of many first, unless chosen otherwise", () => {
    expect(usesCanary(DEFAULT_OPTIONS, filter, 101)).toBe(true);
    expect(usesCanary(DEFAULT_OPTIONS, filter, 100)).toBe(false);
    expect(usesCanary(DEFAULT_OPTIONS, ids, 5_000)).toBe(false);
    expect(usesCanary({ ...DEFAULT_OPTIONS, canary: false }, filter, 5_000)).toBe(false);
  });

  it("turn percent into a share, and leave out what is empty", () => {
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

  it("say what is wrong next to the field that it is about", () => {
    expect(errorsIn(DEFAULT_OPTIONS, "requeue", true)).toEqual({});
    expect(
      Object.keys(errorsIn({ ...DEFAULT_OPTIONS, rate: "0", stopPercent: "101" }, "requeue", false)),
    ).toEqual(["rate", "stopPercent"]);
    expect(errorsIn({ ...DEFAULT_OPTIONS, canaryCount: "2.5" }, "requeue", true)).toHaveProperty(
      "canaryCount",
    );
    expect(errorsIn({ ...DEFAULT_OPTIONS, reason: "  " }, "purge", false)).toHaveProperty("reason");
  });

  it("take the number that confirms with or without separators, and no other", () => {
    expect(isTyped("12,431", 12_431)).toBe(true);
    expect(isTyped(" 12 431 ", 12_431)).toBe(true);
    expect(isTyped("12431", 12_432)).toBe(false);
    expect(isTyped("", 0)).toBe(false);
  });
});
