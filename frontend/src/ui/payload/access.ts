// Bodies that are encrypted, or in the store of large bodies.

import type { Schemas } from "~/api/client";
import { size as sizeText } from "~/lib/format";
import * as texts from "~/texts/payload";

type Access = Schemas["BodyAccess"];

/** Whether there is nothing that can be shown or edited, even after revealing. */
export function isUnreadable({ can_reveal, error }: Access): boolean {
  return !can_reveal || error !== null;
}

/** How a body is kept that is encrypted or stored elsewhere. */
export function howKept({ key_id, stored_size }: Access): string {
  if (stored_size === null) return texts.encryptedWith(key_id ?? "");
  const size = sizeText(stored_size);
  return key_id === null ? texts.storedElsewhere(size) : texts.encryptedElsewhere(key_id, size);
}

/** What reveals such a body, or why this service cannot read it. */
export function howToRead({ key_id, stored_size, can_reveal, error }: Access): string {
  const [noAccess, reveals] =
    stored_size === null
      ? [texts.noKey, texts.revealDecrypts]
      : key_id === null
        ? [texts.noStore, texts.revealFetches]
        : [texts.noKeyOrStore, texts.revealFetchesAndDecrypts];
  if (!can_reveal) return noAccess;
  return error === null ? reveals : texts.unreadable(error);
}
