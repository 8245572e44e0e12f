import { afterEach, expect, it, vi } from "vitest";
import { reloadAfterUpdates } from "./reload";

afterEach(() => sessionStorage.clear());

it("reloads the page when a chunk is missing, but not again after a second failure", () => {
  const reload = vi.fn();
  const stop = reloadAfterUpdates(reload);
  const reportMissingChunk = () => {
    const event = new Event("vite:preloadError", { cancelable: true });
    window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(reportMissingChunk()).toBe(true);
  expect(reportMissingChunk()).toBe(false);
  expect(reload).toHaveBeenCalledTimes(1);
  stop();
});
