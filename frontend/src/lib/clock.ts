// One clock for everything that ticks: components that show an age share its one timer, which rests in a hidden tab.

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

/** Milliseconds since the epoch, updated each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** A typed time as the API takes it; undefined for none. */
export function typedTime(typed: string, zone: string): string | undefined {
  if (!typed) return undefined;
  const time = new Date(zone === "utc" ? `${typed}Z` : typed);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
