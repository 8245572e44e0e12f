import { act, renderHook } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DEFAULTS, setPreferences, storedPreferences, usePreferences } from "./preferences";

const { dataset } = document.documentElement;

afterEach(() => act(() => setPreferences(DEFAULTS)));

describe("preferences", () => {
  it("are stored in the browser, set on the root element, and passed to subscribers", () => {
    const { result } = renderHook(usePreferences);
    act(() => setPreferences({ theme: "dark", density: "compact" }));
    expect(result.current).toEqual({ ...DEFAULTS, theme: "dark", density: "compact" });
    expect(storedPreferences()).toEqual(result.current);
    expect([dataset.theme, dataset.density]).toEqual(["dark", "compact"]);
    act(() => setPreferences({ theme: "system", density: "comfortable" }));
    expect([dataset.theme, dataset.density]).toEqual([undefined, undefined]);
  });

  it.each([
    ["nothing", null],
    ["invalid JSON", "{"],
    ["JSON other than an object", "[1]"],
    ["null", "null"],
    ["unknown values", '{"theme":"purple","zone":1,"live":"yes","toString":"x"}'],
  ])("fall back to the defaults if storage holds %s", (_, stored) => {
    if (stored !== null) localStorage.setItem("outbox.preferences", stored);
    expect(storedPreferences()).toEqual(DEFAULTS);
  });

  it("keep valid values and drop invalid ones", () => {
    localStorage.setItem("outbox.preferences", '{"theme":"purple","zone":"utc","live":false}');
    expect(storedPreferences()).toEqual({ ...DEFAULTS, zone: "utc", live: false });
  });

  it("apply to the open page if storage is unavailable", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("no room", "QuotaExceededError");
    });
    const { result } = renderHook(usePreferences);
    act(() => setPreferences({ zone: "utc" }));
    expect(result.current.zone).toBe("utc");
  });
});
