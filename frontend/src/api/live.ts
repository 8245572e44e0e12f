// Server-sent events that invalidate queries: each event names what has changed.
// The stream is closed while the user paused it, a dialog is open, or the tab is hidden. Once it reopens, all active queries are read again.

import type { QueryClient } from "@tanstack/react-query";
import { api } from "~/lib/mount";
import { store, useStore } from "~/lib/store";
import type { Resource } from "./queries";

export type Connection = "connecting" | "live" | "idle" | "reconnecting";

const connection = store<Connection>("connecting");
const suspensions = store<ReadonlySet<string>>(new Set());

export function useConnection(): Connection {
  return useStore(connection);
}

/** Suspends the stream until the returned function is called. */
export function suspendUpdates(reason: string): () => void {
  // Several parts may suspend for the same reason, so each call gets an entry of its own.
  const id = `${reason}#${Math.random()}`;
  suspensions.set(new Set([...suspensions.get(), id]));
  return () => suspensions.set(new Set([...suspensions.get()].filter((other) => other !== id)));
}

/** Whether a part of the page suspends the stream for this reason. */
export function useIsSuspended(reason: string): boolean {
  return [...useStore(suspensions)].some((id) => id.startsWith(`${reason}#`));
}

const RESOURCES_BY_EVENT: Record<string, readonly Resource[]> = {
  backlog: ["backlog", "messages"],
  dead_letters: ["dead-letters", "groups", "chains"],
  operation: ["operations"],
  component: ["components", "topology", "queues"],
  pauses: ["pauses", "components", "backlog", "queues"],
  statistics: ["statistics", "chains", "queues"],
  database: ["backlog"],
  heartbeat: [],
};

/** Minimum milliseconds between two reads of the same resource. */
const MIN_READ_INTERVAL = 1_000;
const MAX_RETRY_DELAY = 30_000;
/** Milliseconds without an event after which a stream counts as dead. The server sends a heartbeat after 15 s of silence. */
const MAX_SILENCE = 45_000;

/** Listens to the stream until the returned function is called. */
export function listenToEvents(queries: QueryClient): () => void {
  const reader = new EventReader(queries);
  const update = () => reader.update();
  const unsubscribe = suspensions.subscribe(update);
  document.addEventListener("visibilitychange", update);
  reader.update();
  return () => {
    unsubscribe();
    document.removeEventListener("visibilitychange", update);
    reader.close();
    connection.set("connecting");
  };
}

class EventReader {
  private source: EventSource | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private readonly pendingReads = new Map<Resource, ReturnType<typeof setTimeout>>();

  constructor(private readonly queries: QueryClient) {}

  /** Opens or closes the stream to match the page's state. */
  update(): void {
    const isSuspended = suspensions.get().size > 0 || document.visibilityState === "hidden";
    if (isSuspended) {
      this.close();
      connection.set("idle");
    } else if (!this.source && !this.retryTimer) {
      this.open();
    }
  }

  close(): void {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.silenceTimer);
    clearTimeout(this.retryTimer);
    this.retryTimer = undefined;
    for (const timer of this.pendingReads.values()) clearTimeout(timer);
    this.pendingReads.clear();
  }

  private open(): void {
    connection.set(this.failures > 0 ? "reconnecting" : "connecting");
    const source = new EventSource(new URL("events", api));
    this.source = source;
    // A connection whose other end has gone may stay open, and an attempt to connect may get no answer.
    const expectEvents = () => {
      clearTimeout(this.silenceTimer);
      this.silenceTimer = setTimeout(() => {
        source.close();
        this.onError(source);
      }, MAX_SILENCE);
    };
    expectEvents();
    // The cause has passed, but nothing that failed because of it may have changed.
    const readFailed = () =>
      void this.queries.invalidateQueries({ predicate: ({ state }) => state.error !== null });
    source.onopen = () => {
      this.failures = 0;
      expectEvents();
      connection.set("live");
      readFailed();
    };
    source.onerror = () => this.onError(source);
    source.addEventListener("database", readFailed);
    source.addEventListener("reset", () => void this.queries.invalidateQueries());
    for (const [event, resources] of Object.entries(RESOURCES_BY_EVENT)) {
      source.addEventListener(event, () => {
        expectEvents();
        for (const resource of resources) this.scheduleRead(resource);
      });
    }
  }

  // The browser reconnects a stream that ended, but not one that the server refused: that is retried here with backoff.
  private onError(source: EventSource): void {
    this.failures += 1;
    if (this.failures > 1) connection.set("reconnecting");
    if (source.readyState !== EventSource.CLOSED) return;
    this.source = undefined;
    clearTimeout(this.silenceTimer);
    const delay = Math.min(MAX_RETRY_DELAY, 1_000 * 2 ** Math.min(this.failures, 5));
    this.retryTimer = setTimeout(() => {
      this.retryTimer = undefined;
      this.update();
    }, delay);
  }

  private scheduleRead(resource: Resource): void {
    if (this.pendingReads.has(resource)) return;
    const read = () => {
      this.pendingReads.delete(resource);
      void this.queries.invalidateQueries({ queryKey: [resource] });
    };
    this.pendingReads.set(resource, setTimeout(read, MIN_READ_INTERVAL));
  }
}

/** Polling interval for queries that rely on the stream: milliseconds while it is disconnected, otherwise false. */
export function useFallbackInterval(): number | false {
  return useConnection() === "reconnecting" ? 10_000 : false;
}

/** Polling interval for data without events, such as rates; false while updates are suspended. */
export function useInterval(milliseconds: number): number | false {
  return useConnection() === "idle" ? false : milliseconds;
}
