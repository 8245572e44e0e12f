// The stream of server-sent events, as a reason to read again: each event names what has become something else.
// It rests while a person paused it, while a dialog is open, and while the tab is hidden; then everything shown is read once.

import type { QueryClient } from "@tanstack/react-query";
import { api } from "~/lib/mount";
import { store, useStore } from "~/lib/store";
import type { Resource } from "./queries";

export type Connection = "connecting" | "live" | "resting" | "away";

const connection = store<Connection>("connecting");
const resting = store<ReadonlySet<string>>(new Set());

export function useConnection(): Connection {
  return useStore(connection);
}

/** Lets the stream rest for a reason until the returned function is called. */
export function suspendUpdates(reason: string): () => void {
  const mine = `${reason}#${Math.random()}`;
  resting.set(new Set([...resting.get(), mine]));
  return () => resting.set(new Set([...resting.get()].filter((one) => one !== mine)));
}

const CONCERNS: Record<string, readonly Resource[]> = {
  backlog: ["backlog", "messages"],
  dead_letters: ["dead-letters", "groups", "chains"],
  operation: ["operations"],
  component: ["components", "topology", "queues"],
  pauses: ["pauses", "components", "backlog", "queues"],
  statistics: ["statistics", "chains", "queues"],
  database: ["backlog"],
};

/** Reads of the same resource follow each other after this many milliseconds at least. */
const GAP = 1_000;
const LONGEST_PAUSE = 30_000;

/** Listens to the stream until the returned function is called. */
export function listenToEvents(queries: QueryClient): () => void {
  const reader = new Reader(queries);
  const hear = () => reader.adapt();
  const unsubscribe = resting.subscribe(hear);
  document.addEventListener("visibilitychange", hear);
  reader.adapt();
  return () => {
    unsubscribe();
    document.removeEventListener("visibilitychange", hear);
    reader.close();
    connection.set("connecting");
  };
}

class Reader {
  private source: EventSource | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private readonly due = new Map<Resource, ReturnType<typeof setTimeout>>();

  constructor(private readonly queries: QueryClient) {}

  /** Connects or lets go, as the page's state wants it. */
  adapt(): void {
    const rests = resting.get().size > 0 || document.visibilityState === "hidden";
    if (rests) {
      this.close();
      connection.set("resting");
    } else if (!this.source && !this.again) {
      this.open();
    }
  }

  close(): void {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.again);
    this.again = undefined;
    for (const timer of this.due.values()) clearTimeout(timer);
    this.due.clear();
  }

  private open(): void {
    connection.set(this.failures > 0 ? "away" : "connecting");
    const source = new EventSource(new URL("events", api));
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      connection.set("live");
    };
    source.onerror = () => this.lost(source);
    source.addEventListener("reset", () => void this.queries.invalidateQueries());
    for (const [event, resources] of Object.entries(CONCERNS)) {
      source.addEventListener(event, () => {
        for (const resource of resources) this.readSoon(resource);
      });
    }
  }

  /** A stream that ended comes back by itself; one that was refused is asked for again, less and less often. */
  private lost(source: EventSource): void {
    this.failures += 1;
    if (this.failures > 1) connection.set("away");
    if (source.readyState !== EventSource.CLOSED) return;
    this.source = undefined;
    const pause = Math.min(LONGEST_PAUSE, 1_000 * 2 ** Math.min(this.failures, 5));
    this.again = setTimeout(() => {
      this.again = undefined;
      this.adapt();
    }, pause);
  }

  private readSoon(resource: Resource): void {
    if (this.due.has(resource)) return;
    const read = () => {
      this.due.delete(resource);
      void this.queries.invalidateQueries({ queryKey: [resource] });
    };
    this.due.set(resource, setTimeout(read, GAP));
  }
}

/** For queries: while the stream is away they are read every so many milliseconds instead; false while it is not. */
export function useFallbackInterval(): number | false {
  return useConnection() === "away" ? 10_000 : false;
}

/** For what no event tells of, such as speeds: read every so many milliseconds, unless the page rests. */
export function useInterval(milliseconds: number): number | false {
  return useConnection() === "resting" ? false : milliseconds;
}
