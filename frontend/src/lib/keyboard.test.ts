import { renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listen, useActiveShortcuts, useShortcuts } from "./keyboard";

let stop = () => {};
beforeEach(() => {
  stop = listen();
});
afterEach(() => {
  stop();
  document.body.innerHTML = "";
});

function press(key: string, on: Element = document.body, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  on.dispatchEvent(event);
  return event;
}

function offer(keys: string, enabled = true) {
  const run = vi.fn();
  const rendered = renderHook(
    ({ enabled }) => useShortcuts("Rows", [{ keys, label: "Does it", run }], enabled),
    { initialProps: { enabled } },
  );
  return { run, ...rendered };
}

function put(html: string): Element {
  document.body.innerHTML = html;
  return document.body.querySelector("[data-here]") ?? document.body;
}

describe("shortcuts", () => {
  it("are heard while what offers them is on screen, and enabled", () => {
    const { run, rerender, unmount } = offer("j");
    expect(press("j").defaultPrevented).toBe(true);
    rerender({ enabled: false });
    press("j");
    rerender({ enabled: true });
    press("j");
    unmount();
    expect(press("j").defaultPrevented).toBe(false);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it("are left alone behind an open dialog, even where focus is in none", () => {
    const { run } = offer("Escape");
    put("<div role='dialog' data-modal data-open></div>");
    press("Escape");
    expect(run).not.toHaveBeenCalled();
    put("");
    press("Escape");
    expect(run).toHaveBeenCalledOnce();
  });

  it("are left alone while the user types, in a dialog, and with Ctrl, Alt or Meta", () => {
    const { run } = offer("j");
    press("j", put("<input data-here>"));
    press("j", put("<textarea data-here></textarea>"));
    press("j", put("<div role='dialog'><button data-here></button></div>"));
    press("j", document.body, { ctrlKey: true });
    press("j", document.body, { metaKey: true });
    press("j", document.body, { altKey: true });
    expect(run).not.toHaveBeenCalled();
    press("j", put("<input type='checkbox' data-here>"));
    expect(run).toHaveBeenCalledTimes(1);
  });

  it("leave Enter to what has focus, where it does something there by itself", () => {
    const { run } = offer("Enter");
    expect(press("Enter", put("<button data-here></button>")).defaultPrevented).toBe(false);
    press("Enter", put("<a href='#there'><b data-here></b></a>"));
    press("Enter", put("<details><summary data-here></summary></details>"));
    expect(run).not.toHaveBeenCalled();
    press("Enter");
    expect(run).toHaveBeenCalledOnce();
  });

  it("of two keys take the second soon after the first", () => {
    vi.useFakeTimers();
    const { run } = offer("g o");
    press("o");
    press("g");
    vi.advanceTimersByTime(2_000);
    press("o");
    expect(run).not.toHaveBeenCalled();
    press("g");
    press("o");
    expect(run).toHaveBeenCalledTimes(1);
    vi.useRealTimers();
  });

  it("of the part that came last win over the same keys of others, and come back after it", () => {
    const page = offer("Escape");
    const detail = offer("Escape");
    press("Escape");
    expect([page.run.mock.calls.length, detail.run.mock.calls.length]).toEqual([0, 1]);
    detail.unmount();
    press("Escape");
    expect(page.run).toHaveBeenCalledTimes(1);
  });

  it("run what the latest render wanted, and are listed with their words", () => {
    const first = vi.fn();
    const second = vi.fn();
    const { rerender } = renderHook(
      ({ run }) => useShortcuts("Rows", [{ keys: "x", label: "Select", run }]),
      {
        initialProps: { run: first },
      },
    );
    rerender({ run: second });
    press("x");
    expect(first).not.toHaveBeenCalled();
    expect(second).toHaveBeenCalledTimes(1);
    const { result } = renderHook(useActiveShortcuts);
    expect(result.current).toMatchObject([{ group: "Rows", keys: "x", label: "Select" }]);
  });
});
