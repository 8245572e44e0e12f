import { QueryClient } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listenToEvents, suspendUpdates, useConnection } from "./live";

class FakeStream extends EventTarget {
  static readonly CLOSED = 2;
  static all: FakeStream[] = [];
  readyState = 0;
  onopen: (() => void) | undefined;
  onerror: (() => void) | undefined;

  constructor(readonly url: URL) {
    super();
    FakeStream.all.push(this);
  }
  close(): void {
    this.readyState = FakeStream.CLOSED;
  }
  opens(): void {
    this.readyState = 1;
    act(() => this.onopen?.());
  }
  tells(event: string): void {
    this.dispatchEvent(new Event(event));
  }
  /** Refused: the browser does not come back by itself. */
  isRefused(): void {
    this.readyState = FakeStream.CLOSED;
    act(() => this.onerror?.());
  }
}

const queries = new QueryClient();
let stop = () => {};
let hidden = false;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", FakeStream);
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => (hidden ? "hidden" : "visible"));
  vi.spyOn(queries, "invalidateQueries").mockResolvedValue();
  FakeStream.all = [];
  stop = listenToEvents(queries);
});
afterEach(() => {
  act(() => stop());
  hidden = false;
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const streams = () => FakeStream.all;
const open = () => streams().filter(({ readyState }) => readyState !== FakeStream.CLOSED);
function latest(): FakeStream {
  const found = streams().at(-1);
  if (!found) throw new Error("nothing was asked for");
  return found;
}
function hide(now: boolean): void {
  hidden = now;
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
}
/** How often each resource was read again; "everything" for all at once. */
function reads(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [filters] of vi.mocked(queries.invalidateQueries).mock.calls) {
    const name = String(filters?.queryKey?.[0] ?? "everything");
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe("the stream", () => {
  it("says how the page is connected", () => {
    const { result } = renderHook(useConnection);
    expect(result.current).toBe("connecting");
    latest().opens();
    expect(result.current).toBe("live");
    hide(true);
    expect(result.current).toBe("resting");
  });

  it("rests in a hidden tab, and reads everything once when it is seen again", () => {
    latest().opens();
    hide(true);
    expect(open()).toEqual([]);
    hide(false);
    expect(open()).toHaveLength(1);
    latest().opens();
    latest().tells("reset");
    vi.advanceTimersByTime(60_000);
    expect(reads()).toEqual({ everything: 1 });
  });

  it("rests while a dialog is open and while it is paused, until neither holds", () => {
    const closeDialog = suspendUpdates("dialog");
    const resume = suspendUpdates("paused");
    expect(open()).toEqual([]);
    closeDialog();
    expect(open()).toEqual([]);
    resume();
    expect(open()).toHaveLength(1);
  });

  it("reads what an event names at most once a second, and forgets what was due when it rests", () => {
    latest().opens();
    for (let hints = 0; hints < 100; hints += 1) latest().tells("operation");
    expect(reads()).toEqual({});
    vi.advanceTimersByTime(1_000);
    expect(reads()).toEqual({ operations: 1 });
    latest().tells("dead_letters");
    vi.advanceTimersByTime(1_000);
    expect(reads()).toEqual({ operations: 1, "dead-letters": 1, groups: 1, chains: 1 });
    latest().tells("operation");
    const wake = suspendUpdates("dialog");
    vi.advanceTimersByTime(5_000);
    expect(reads().operations).toBe(1);
    wake();
  });

  it("that was refused is asked for again, less and less often, up to every half minute", () => {
    const pauses = [2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    for (const [times, pause] of pauses.entries()) {
      latest().isRefused();
      vi.advanceTimersByTime(pause - 1);
      expect(streams()).toHaveLength(times + 1);
      act(() => void vi.advanceTimersByTime(1));
      expect(streams()).toHaveLength(times + 2);
    }
    const { result } = renderHook(useConnection);
    expect(result.current).toBe("away");
    latest().opens();
    expect(result.current).toBe("live");
    latest().isRefused();
    vi.advanceTimersByTime(2_000);
    expect(open()).toHaveLength(1);
  });

  it("is over with the page that listened", () => {
    latest().isRefused();
    act(() => stop());
    vi.advanceTimersByTime(60_000);
    expect(open()).toEqual([]);
    expect(streams()).toHaveLength(1);
  });
});
