import { afterEach, expect, it, vi } from "vitest";
import { loadAnewAfterUpdates } from "./anew";

afterEach(() => sessionStorage.clear());

it("loads the page anew when a part is missing, and leaves a second failure to the page", () => {
  const reload = vi.fn();
  const stop = loadAnewAfterUpdates(reload);
  const missing = () => {
    const event = new Event("vite:preloadError", { cancelable: true });
    window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(missing()).toBe(true);
  expect(missing()).toBe(false);
  expect(reload).toHaveBeenCalledTimes(1);
  stop();
});
