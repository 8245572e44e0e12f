import { QueryClient, QueryObserver } from "@tanstack/react-query";
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
  open(): void {
    this.readyState = 1;
    act(() => this.onopen?.());
  }
  emit(event: string): void {
    this.dispatchEvent(new Event(event));
  }
  /** The browser does not reconnect after a refusal. */
  refuse(): void {
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
const openStreams = () => streams().filter(({ readyState }) => readyState !== FakeStream.CLOSED);
function latest(): FakeStream {
  const found = streams().at(-1);
  if (!found) throw new Error("no stream was opened");
  return found;
}
function hide(isHidden: boolean): void {
  hidden = isHidden;
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
}
/** Number of reads by resource; "everything" for all at once. */
function reads(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [filters] of vi.mocked(queries.invalidateQueries).mock.calls) {
    if (filters?.predicate) continue; // only what has failed
    const name = String(filters?.queryKey?.[0] ?? "everything");
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe("the event stream", () => {
  it("reports the state of the connection", () => {
    const { result } = renderHook(useConnection);
    expect(result.current).toBe("connecting");
    latest().open();
    expect(result.current).toBe("live");
    hide(true);
    expect(result.current).toBe("idle");
  });

  it("closes in a hidden tab, and reads everything once when the tab is visible again", () => {
    latest().open();
    hide(true);
    expect(openStreams()).toEqual([]);
    hide(false);
    expect(openStreams()).toHaveLength(1);
    latest().open();
    latest().emit("reset");
    vi.advanceTimersByTime(60_000);
    expect(reads()).toEqual({ everything: 1 });
  });

  it("stays closed until the dialog is closed and updates are resumed", () => {
    const closeDialog = suspendUpdates("dialog");
    const resume = suspendUpdates("paused");
    expect(openStreams()).toEqual([]);
    closeDialog();
    expect(openStreams()).toEqual([]);
    resume();
    expect(openStreams()).toHaveLength(1);
  });

  it("reads the resources of an event at most once a second, and drops pending reads when suspended", () => {
    latest().open();
    for (let count = 0; count < 100; count += 1) latest().emit("operation");
    expect(reads()).toEqual({});
    vi.advanceTimersByTime(1_000);
    expect(reads()).toEqual({ operations: 1 });
    latest().emit("dead_letters");
    vi.advanceTimersByTime(1_000);
    expect(reads()).toEqual({ operations: 1, "dead-letters": 1, groups: 1, chains: 1 });
    latest().emit("operation");
    const wake = suspendUpdates("dialog");
    vi.advanceTimersByTime(5_000);
    expect(reads().operations).toBe(1);
    wake();
  });

  it("reads what has failed once the service or its database is back", async () => {
    vi.mocked(queries.invalidateQueries).mockRestore();
    const answers = ["no connection", "no database", undefined];
    const read = vi.fn(async () => {
      const failure = answers.shift();
      if (failure) throw new Error(failure);
      return "read";
    });
    const unsubscribe = new QueryObserver(queries, {
      queryKey: ["audit"],
      queryFn: read,
      retry: false,
    }).subscribe(() => {});
    await vi.waitFor(() => expect(queries.getQueryState(["audit"])?.error?.message).toBe("no connection"));
    latest().open();
    await vi.waitFor(() => expect(queries.getQueryState(["audit"])?.error?.message).toBe("no database"));
    latest().emit("database");
    await vi.waitFor(() => expect(queries.getQueryState(["audit"])?.data).toBe("read"));
    latest().emit("database");
    expect(read).toHaveBeenCalledTimes(3);
    unsubscribe();
  });

  it("reconnects with backoff after a refusal, at most every 30 seconds", () => {
    const delays = [2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    for (const [times, delay] of delays.entries()) {
      latest().refuse();
      vi.advanceTimersByTime(delay - 1);
      expect(streams()).toHaveLength(times + 1);
      act(() => void vi.advanceTimersByTime(1));
      expect(streams()).toHaveLength(times + 2);
    }
    const { result } = renderHook(useConnection);
    expect(result.current).toBe("reconnecting");
    latest().open();
    expect(result.current).toBe("live");
    latest().refuse();
    vi.advanceTimersByTime(2_000);
    expect(openStreams()).toHaveLength(1);
  });

  it("replaces a stream on which no event and no heartbeat arrives", () => {
    const { result } = renderHook(useConnection);
    latest().open();
    for (let minutes = 0; minutes < 5; minutes += 1) {
      act(() => void vi.advanceTimersByTime(40_000));
      latest().emit(minutes % 2 ? "heartbeat" : "operation");
    }
    expect([result.current, streams().length]).toEqual(["live", 1]);
    act(() => void vi.advanceTimersByTime(47_000));
    expect([result.current, streams().length, openStreams().length]).toEqual(["reconnecting", 2, 1]);
    act(() => void vi.advanceTimersByTime(49_000)); // it never opens
    expect([streams().length, openStreams().length]).toEqual([3, 1]);
    latest().open();
    expect(result.current).toBe("live");
  });

  it("does not reconnect after the page stopped listening", () => {
    latest().refuse();
    act(() => stop());
    vi.advanceTimersByTime(60_000);
    expect(openStreams()).toEqual([]);
    expect(streams()).toHaveLength(1);
  });
});
