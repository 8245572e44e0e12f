import { act, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { announce } from "./announce";
import { Announcements } from "./announcements";

let now = Date.now();
beforeEach(() => {
  now += 3_600_000;
  vi.spyOn(Date, "now").mockImplementation(() => now);
});
afterEach(() => vi.useRealTimers());

function countShown(text: string): number {
  const toasts = [...document.querySelectorAll("[data-tone]")];
  return toasts.filter((toast) => toast.textContent?.includes(text)).length;
}

/** Renders announcements and waits until the toasts have loaded. */
async function renderAnnouncements() {
  render(<Announcements />);
  await act(async () => void (await import("./Toasts")));
}

describe("announcements", () => {
  it("show a text once if it is announced twice in a row", async () => {
    await renderAnnouncements();
    act(() => announce("Copied the id"));
    act(() => announce("Copied the id"));
    expect(countShown("Copied the id")).toBe(1);
    now += 2_000;
    act(() => announce("Copied the id"));
    expect(countShown("Copied the id")).toBe(2);
  });

  it("disappear on their own, but failures stay until dismissed", async () => {
    await renderAnnouncements();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    act(() => announce("Requeued 3"));
    act(() => announce("It failed", "bad"));
    await act(async () => void (await vi.advanceTimersByTimeAsync(60_000)));
    expect([countShown("Requeued 3"), countShown("It failed")]).toEqual([0, 1]);
    vi.useRealTimers();
    await userEvent.click(screen.getByLabelText("Dismiss"));
    await vi.waitFor(() => expect(countShown("It failed")).toBe(0));
  });

  it("interrupt screen readers once for failures, and stay reachable to dismiss", async () => {
    await renderAnnouncements();
    act(() => announce("It failed again", "bad"));
    expect(screen.getByRole("alert").textContent).toBe("It failed again");
    const toast = screen.getByRole("alertdialog");
    expect(toast.getAttribute("aria-live")).toBe("off");
    expect(within(toast).getByRole("button", { name: "Dismiss" })).toBeDefined();
  });

  it("link to results, and show announcements made before they loaded", async () => {
    announce("3 of 3 dead letters were requeued.", "good", "/operations/7");
    await renderAnnouncements();
    expect(countShown("3 of 3 dead letters")).toBe(1);
    expect(screen.getByRole("link", { name: "Show result" }).getAttribute("href")).toBe("/operations/7");
  });
});
