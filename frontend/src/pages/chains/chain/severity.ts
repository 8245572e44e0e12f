// Which states need attention, which are on their way, which are over.

import { LISTED_STATES } from "~/api/chains";

const WORST_FIRST: readonly string[] = LISTED_STATES;
const NEEDY: ReadonlySet<string> = new Set(["dead", "parked", "held", "stalled"]);
const GRAVE = WORST_FIRST.indexOf("retrying");

/** The lower, the graver. */
export function rank(state: string): number {
  const at = WORST_FIRST.indexOf(state);
  return at < 0 ? WORST_FIRST.length : at;
}

/** Whether it stays visible while its siblings are folded. */
export function isSevere(ranked: number): boolean {
  return ranked <= GRAVE;
}

/** Whether it stays as it is until an operator acts. */
export function needsAttention(state: string): boolean {
  return NEEDY.has(state);
}
