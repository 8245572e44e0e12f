// A shared clock: all components that show an age use one timer, which does nothing in a hidden tab.

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  if (document.visibilityState === "hidden") return;
  now = Date.now();
  for (const listener of [...listeners]) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now();
    timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    document.removeEventListener("visibilitychange", tick);
  };
}

/** Current time in milliseconds since the epoch, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Converts the value of a datetime-local input to the API's format; undefined if empty or invalid. */
export function parseTimeInput(value: string, zone: string): string | undefined {
  if (!value) return undefined;
  const time = new Date(zone === "utc" ? `${value}Z` : value);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
