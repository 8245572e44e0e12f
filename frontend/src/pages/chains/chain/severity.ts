// Severity of message states.

import { LISTED_STATES } from "~/api/chains";

const WORST_FIRST: readonly string[] = LISTED_STATES;
const NEEDS_ATTENTION: ReadonlySet<string> = new Set(["dead", "parked", "held", "stalled"]);
const SEVERE = WORST_FIRST.indexOf("retrying");

/** Rank of a state; lower is more severe. */
export function rank(state: string): number {
  const at = WORST_FIRST.indexOf(state);
  return at < 0 ? WORST_FIRST.length : at;
}

/** Whether a message of this rank stays visible while its siblings are collapsed. */
export function isSevere(ranked: number): boolean {
  return ranked <= SEVERE;
}

/** Whether a message in this state waits for an operator. */
export function needsAttention(state: string): boolean {
  return NEEDS_ATTENTION.has(state);
}
