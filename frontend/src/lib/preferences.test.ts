import { act, renderHook } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DEFAULTS, prefer, storedPreferences, usePreferences } from "./preferences";

const { dataset } = document.documentElement;

afterEach(() => act(() => prefer(DEFAULTS)));

describe("preferences", () => {
  it("are kept in the browser, shown by the page's root, and passed to their subscribers", () => {
    const { result } = renderHook(usePreferences);
    act(() => prefer({ theme: "dark", density: "compact" }));
    expect(result.current).toEqual({ ...DEFAULTS, theme: "dark", density: "compact" });
    expect(storedPreferences()).toEqual(result.current);
    expect([dataset.theme, dataset.density]).toEqual(["dark", "compact"]);
    act(() => prefer({ theme: "system", density: "comfortable" }));
    expect([dataset.theme, dataset.density]).toEqual([undefined, undefined]);
  });

  it.each([
    ["nothing", null],
    ["no JSON", "{"],
    ["JSON that is no object", "[1]"],
    ["null", "null"],
    ["values that are not offered", '{"theme":"purple","zone":1,"live":"yes","toString":"x"}'],
  ])("are the defaults where storage holds %s", (_, held) => {
    if (held !== null) localStorage.setItem("outbox.preferences", held);
    expect(storedPreferences()).toEqual(DEFAULTS);
  });

  it("keep valid values next to invalid ones", () => {
    localStorage.setItem("outbox.preferences", '{"theme":"purple","zone":"utc","live":false}');
    expect(storedPreferences()).toEqual({ ...DEFAULTS, zone: "utc", live: false });
  });

  it("hold for this page where the browser keeps nothing", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("no room", "QuotaExceededError");
    });
    const { result } = renderHook(usePreferences);
    act(() => prefer({ zone: "utc" }));
    expect(result.current.zone).toBe("utc");
  });
});
