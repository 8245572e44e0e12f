import { fetchBody, fetchMasked, fetchRevealed } from "~/api/dead-letter";
import { Failure } from "~/api/problems";
import { howKept, howToRead, isUnreadable } from "~/ui/payload";
import { type Base, baseOf, baseOfBytes } from "./draft";

/** Loads the unmasked dead letter with its full body. This is written to the audit log. */
export async function loadRevealedBase(id: string): Promise<Base> {
  const deadLetter = await fetchRevealed(id);
  // Nothing can be edited in its place: an empty body, or ciphertext.
  const { access } = deadLetter.body;
  if (access && isUnreadable(access)) {
    throw new Failure({ code: "unreadable", title: howKept(access), detail: howToRead(access), status: 0 });
  }
  if (!deadLetter.body.truncated) return baseOf(deadLetter);
  return baseOfBytes(deadLetter, new Uint8Array(await (await fetchBody(id)).arrayBuffer()));
}

/** Loads the current dead letter without revealing it. For dead letters without fetchMasked values. */
export async function loadBase(id: string): Promise<Base> {
  return baseOf(await fetchMasked(id));
}
