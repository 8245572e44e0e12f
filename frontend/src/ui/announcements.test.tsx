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

function shown(text: string): number {
  const toasts = [...document.querySelectorAll("[data-tone]")];
  return toasts.filter((toast) => toast.textContent?.includes(text)).length;
}

/** The place of announcements, when what shows them has been loaded. */
async function shownPlace() {
  render(<Announcements />);
  await act(async () => void (await import("./Toasts")));
}

describe("announcements", () => {
  it("say a text once, though it is announced twice in a row", async () => {
    await shownPlace();
    act(() => announce("Copied the id"));
    act(() => announce("Copied the id"));
    expect(shown("Copied the id")).toBe(1);
    now += 2_000;
    act(() => announce("Copied the id"));
    expect(shown("Copied the id")).toBe(2);
  });

  it("go by themselves, but failures stay until they are dismissed", async () => {
    await shownPlace();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    act(() => announce("Requeued 3"));
    act(() => announce("It failed", "bad"));
    await act(async () => void (await vi.advanceTimersByTimeAsync(60_000)));
    expect([shown("Requeued 3"), shown("It failed")]).toEqual([0, 1]);
    vi.useRealTimers();
    await userEvent.click(screen.getByLabelText("Dismiss"));
    await vi.waitFor(() => expect(shown("It failed")).toBe(0));
  });

  it("interrupt a screen reader for failures, once, and can be found and dismissed by it", async () => {
    await shownPlace();
    act(() => announce("It failed again", "bad"));
    expect(screen.getByRole("alert").textContent).toBe("It failed again");
    const toast = screen.getByRole("alertdialog");
    expect(toast.getAttribute("aria-live")).toBe("off");
    expect(within(toast).getByRole("button", { name: "Dismiss" })).toBeDefined();
  });

  it("lead to what came of something, and show what was said before they were loaded", async () => {
    announce("3 of 3 dead letters were requeued.", "good", "/operations/7");
    await shownPlace();
    expect(shown("3 of 3 dead letters")).toBe(1);
    expect(screen.getByRole("link", { name: "Show result" }).getAttribute("href")).toBe("/operations/7");
  });
});
