import { fetchBody, fetchMasked, fetchRevealed } from "~/api/dead-letter";
import { type Base, baseOf, baseOfBytes } from "./draft";

/** Loads the unmasked dead letter with its full body. This is written to the audit log. */
export async function loadRevealedBase(id: string): Promise<Base> {
  const deadLetter = await fetchRevealed(id);
  if (!deadLetter.body.truncated) return baseOf(deadLetter);
  return baseOfBytes(deadLetter, new Uint8Array(await (await fetchBody(id)).arrayBuffer()));
}

/** Loads the current dead letter without revealing it. For dead letters without fetchMasked values. */
export async function loadBase(id: string): Promise<Base> {
  return baseOf(await fetchMasked(id));
}
