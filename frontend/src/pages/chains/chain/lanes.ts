// The times at which a message waited and was handled, as spans in milliseconds since the epoch.

import type { Chain, ChainMessage, Delivery } from "~/api/chains";
import { UNSENT } from "~/api/messages";

/** `dead`: from dead-lettering to the first attempt after the requeue. */
export type Kind = "outbox" | "broker" | "handling" | "retry" | "dead";

export interface Piece {
  kind: Kind;
  from: number;
  to: number;
  /** Has not ended; drawn up to now. */
  open: boolean;
}

export interface Mark {
  at: number;
  outcome: string;
  attempt: number;
}

export interface Lane {
  pieces: readonly Piece[];
  marks: readonly Mark[];
}

export interface Lanes {
  outbox: Lane;
  /** One per queue, in the order of the deliveries. */
  deliveries: readonly Lane[];
}

export interface Span {
  from: number;
  to: number;
}

const IN_OUTBOX: ReadonlySet<string> = new Set(UNSENT);

export function lanesOf(message: ChainMessage, now: number): Lanes {
  return {
    outbox: { pieces: inOutbox(message, now), marks: [] },
    deliveries: message.deliveries.map((delivery) => deliveryLane(message, delivery, now)),
  };
}

/** Returns the span from the first to the last time of a message; undefined without times. */
export function boundsOf({ outbox, deliveries }: Lanes): Span | undefined {
  return boundsOfLanes([outbox, ...deliveries]);
}

export function boundsOfLanes(lanes: readonly Lane[]): Span | undefined {
  return spanOf(
    lanes.flatMap(({ pieces, marks }) => [
      ...pieces.flatMap(({ from, to }) => [from, to]),
      ...marks.map(({ at }) => at),
    ]),
  );
}

/** Returns the span from the first to the last time of a chain. */
export function extentOf(lanes: Iterable<Lanes>): Span | undefined {
  return spanOf([...lanes].flatMap((each) => boundsOf(each) ?? []).flatMap(({ from, to }) => [from, to]));
}

/** Returns the current time, or the latest time in the chain if that is later, because clocks of machines differ. */
export function nowFor(chain: Chain, readAt: number): number {
  let latest = readAt;
  for (const { published_at, sent_at, deliveries } of chain.nodes) {
    const times = [
      published_at,
      sent_at,
      ...deliveries.flatMap(({ attempts }) => attempts.map(({ ended_at: at }) => at)),
    ];
    for (const at of times) latest = Math.max(latest, milliseconds(at) ?? latest);
  }
  return latest;
}

function spanOf(times: readonly number[]): Span | undefined {
  if (times.length === 0) return undefined;
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const time of times) {
    from = Math.min(from, time);
    to = Math.max(to, time);
  }
  return { from, to };
}

function inOutbox(
  { published_at, sent_at, waited_seconds: waited, state }: ChainMessage,
  now: number,
): Piece[] {
  const sent = milliseconds(sent_at);
  const from = milliseconds(published_at) ?? (sent === undefined ? undefined : sent);
  if (from === undefined) return [];
  if (sent !== undefined) {
    const to = Math.max(sent, waited === null ? sent : from + waited * 1000);
    return to > from ? [{ kind: "outbox", from, to, open: false }] : [];
  }
  return IN_OUTBOX.has(state) ? [{ kind: "outbox", from, to: Math.max(now, from), open: true }] : [];
}

const WAITING_STATES: ReadonlySet<string> = new Set(["queued", "retrying", "requeued"]);

function deliveryLane(message: ChainMessage, delivery: Delivery, now: number): Lane {
  const pieces: Piece[] = [];
  const marks: Mark[] = [];
  let at = milliseconds(message.sent_at) ?? milliseconds(delivery.received_at);
  let waitKind: Kind = "broker";
  for (const attempt of delivery.attempts) {
    const ended = milliseconds(attempt.ended_at);
    if (ended === undefined) continue;
    const began = ended - (attempt.handling_seconds ?? 0) * 1000;
    if (at !== undefined && began > at) pieces.push({ kind: waitKind, from: at, to: began, open: false });
    if (ended > began) pieces.push({ kind: "handling", from: began, to: ended, open: false });
    if (attempt.outcome !== "processed") {
      marks.push({ at: ended, outcome: attempt.outcome, attempt: attempt.attempt });
    }
    at = ended;
    waitKind = attempt.outcome === "dead_lettered" ? "dead" : "retry";
  }
  const last = openPiece(delivery, at, waitKind, now);
  return { pieces: last ? [...pieces, last] : pieces, marks };
}

/** Returns the piece that has not ended, drawn up to now. */
function openPiece(
  delivery: Delivery,
  at: number | undefined,
  waitKind: Kind,
  now: number,
): Piece | undefined {
  if (at === undefined || now <= at) return undefined;
  if (delivery.state === "in_flight") return { kind: "handling", from: at, to: now, open: true };
  if (!WAITING_STATES.has(delivery.state)) return undefined;
  return { kind: waitKind === "dead" ? "broker" : waitKind, from: at, to: now, open: true };
}

function milliseconds(iso: string | null): number | undefined {
  const at = iso === null ? Number.NaN : Date.parse(iso);
  return Number.isNaN(at) ? undefined : at;
}
