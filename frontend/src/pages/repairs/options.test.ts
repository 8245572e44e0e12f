import { describe, expect, it } from "vitest";
import { errorsIn, goesCarefully, isTyped, mannerOf, UNTOUCHED, wantedOf } from "./options";

const filter = { filter: { status: "open" as const, queue: "mail" } };
const ids = { ids: ["17"] };

describe("the options of a repair", () => {
  it("ask for a dry run only of what makes sense", () => {
    const asked = (options: Partial<typeof UNTOUCHED>) =>
      wantedOf({ action: "requeue", selector: filter }, { ...UNTOUCHED, ...options });
    expect(asked({})).toMatchObject({ destination: undefined, maxItems: undefined, force: false });
    expect(asked({ where: "routing" })?.destination).toBe("original-routing");
    expect(asked({ where: "queue", queue: " mail.late " })?.destination).toEqual({ queue: "mail.late" });
    expect(asked({ where: "queue" })).toBeUndefined();
    expect(asked({ maxItems: "1,204" })?.maxItems).toBe(1204);
    expect(asked({ maxItems: "0" })).toBeUndefined();
  });

  it("send some of many first, unless somebody decides otherwise", () => {
    expect(goesCarefully(UNTOUCHED, filter, 101)).toBe(true);
    expect(goesCarefully(UNTOUCHED, filter, 100)).toBe(false);
    expect(goesCarefully(UNTOUCHED, ids, 5_000)).toBe(false);
    expect(goesCarefully({ ...UNTOUCHED, canary: false }, filter, 5_000)).toBe(false);
  });

  it("turn percent into a share, and leave out what is empty", () => {
    const typed = { ...UNTOUCHED, stopPercent: "12.5", rate: "200", reason: "  " };
    expect(mannerOf(typed, true)).toEqual({
      rate: 200,
      canary: { count: 10, wait_seconds: 600 },
      stopRatio: 0.125,
      reason: undefined,
    });
    expect(mannerOf(UNTOUCHED, false)).toEqual({
      rate: undefined,
      canary: undefined,
      stopRatio: undefined,
      reason: undefined,
    });
  });

  it("say what is wrong beside the field that it is about", () => {
    expect(errorsIn(UNTOUCHED, "requeue", true)).toEqual({});
    expect(Object.keys(errorsIn({ ...UNTOUCHED, rate: "0", stopPercent: "101" }, "requeue", false))).toEqual([
      "rate",
      "stopPercent",
    ]);
    expect(errorsIn({ ...UNTOUCHED, canaryCount: "2.5" }, "requeue", true)).toHaveProperty("canaryCount");
    expect(errorsIn({ ...UNTOUCHED, reason: "  " }, "purge", false)).toHaveProperty("reason");
  });

  it("take the number that confirms with or without separators, and no other", () => {
    expect(isTyped("12,431", 12_431)).toBe(true);
    expect(isTyped(" 12 431 ", 12_431)).toBe(true);
    expect(isTyped("12431", 12_432)).toBe(false);
    expect(isTyped("", 0)).toBe(false);
  });
});
