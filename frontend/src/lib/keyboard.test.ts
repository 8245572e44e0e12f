import { render, renderHook, screen } from "@testing-library/react";
import { createElement } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Button } from "~/ui";
import { listenForShortcuts, useActiveShortcuts, useShortcuts } from "./keyboard";

let stop = () => {};
beforeEach(() => {
  stop = listenForShortcuts();
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

function mountShortcut(keys: string, enabled = true) {
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
  it("work while their component is mounted and enabled", () => {
    const { run, rerender, unmount } = mountShortcut("j");
    expect(press("j").defaultPrevented).toBe(true);
    rerender({ enabled: false });
    press("j");
    rerender({ enabled: true });
    press("j");
    unmount();
    expect(press("j").defaultPrevented).toBe(false);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it("work while a disabled button has focus", () => {
    const { run } = mountShortcut("Escape");
    render(createElement(Button, { whyNot: "this is the last one" }, "Next"));
    press("Escape", screen.getByRole("button"));
    expect(run).toHaveBeenCalledOnce();
  });

  it("are ignored behind an open dialog, even without focus in it", () => {
    const { run } = mountShortcut("Escape");
    put("<div role='dialog' data-modal data-open></div>");
    press("Escape");
    expect(run).not.toHaveBeenCalled();
    put("");
    press("Escape");
    expect(run).toHaveBeenCalledOnce();
  });

  it("are ignored while the user types, in a dialog, and with Ctrl, Alt or Meta", () => {
    const { run } = mountShortcut("j");
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

  it("leave Enter to focused elements that handle it themselves", () => {
    const { run } = mountShortcut("Enter");
    expect(press("Enter", put("<button data-here></button>")).defaultPrevented).toBe(false);
    press("Enter", put("<a href='#there'><b data-here></b></a>"));
    press("Enter", put("<details><summary data-here></summary></details>"));
    expect(run).not.toHaveBeenCalled();
    press("Enter");
    expect(run).toHaveBeenCalledOnce();
  });

  it("of two keys run if the second follows soon after the first", () => {
    vi.useFakeTimers();
    const { run } = mountShortcut("g o");
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

  it("of the component mounted last override the same keys of others until it unmounts", () => {
    const page = mountShortcut("Escape");
    const detail = mountShortcut("Escape");
    press("Escape");
    expect([page.run.mock.calls.length, detail.run.mock.calls.length]).toEqual([0, 1]);
    detail.unmount();
    press("Escape");
    expect(page.run).toHaveBeenCalledTimes(1);
  });

  it("run the callback of the latest render, and are listed with their labels", () => {
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
