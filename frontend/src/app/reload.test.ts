import { afterEach, expect, it, vi } from "vitest";
import { reloadAfterUpdates } from "./reload";

afterEach(() => sessionStorage.clear());

it("reloads the page when a chunk is missing, and leaves a second failure to the page", () => {
  const reload = vi.fn();
  const stop = reloadAfterUpdates(reload);
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
