import { fetchBody, fetchMasked, fetchRevealed } from "~/api/dead-letter";
import { type Base, baseOf, baseOfBytes } from "./draft";

/** The letter as it is, with all of its body; which is written to the audit. */
export async function baseFor(id: string): Promise<Base> {
  const letter = await fetchRevealed(id);
  if (!letter.body.truncated) return baseOf(letter);
  return baseOfBytes(letter, new Uint8Array(await (await fetchBody(id)).arrayBuffer()));
}

/** The letter as everybody sees it, where nothing of it is masked. */
export async function baseNow(id: string): Promise<Base> {
  return baseOf(await fetchMasked(id));
}
