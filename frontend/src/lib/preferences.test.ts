import { act, renderHook } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DEFAULTS, kept, prefer, usePreferences } from "./preferences";

const { dataset } = document.documentElement;

afterEach(() => act(() => prefer(DEFAULTS)));

describe("preferences", () => {
  it("are kept in the browser, shown by the page's root, and told to whoever uses them", () => {
    const { result } = renderHook(usePreferences);
    act(() => prefer({ theme: "dark", density: "compact" }));
    expect(result.current).toEqual({ ...DEFAULTS, theme: "dark", density: "compact" });
    expect(kept()).toEqual(result.current);
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
    expect(kept()).toEqual(DEFAULTS);
  });

  it("keep what makes sense beside what does not", () => {
    localStorage.setItem("outbox.preferences", '{"theme":"purple","zone":"utc","live":false}');
    expect(kept()).toEqual({ ...DEFAULTS, zone: "utc", live: false });
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
