// Texts of message bodies.

import { number, plural } from "~/lib/format";

export const bytesShown = (shown: number, total: number) => `${number(shown)} of ${number(total)} bytes.`;
export const showMore = "Show more";
export const tree = "Tree";
export const raw = "Raw";
export const hex = "Hex";
export const body = "Body";
export const noContentType = "no content type";
export const wrapLines = "Wrap lines";
export const copyBase64 = "Copy as base64";
export const copyShown = "Copy as shown";
export const viewOf = (label: string) => `${label}, view`;
export const truncated = (size: string) => `Truncated: only the beginning of ${size} is shown.`;
export const maskedHint = "Secrets are masked.";
export const emptyBody = "The body is empty.";
export const hiddenBody = "The body is not shown.";
export const hiddenHint = "Hidden: too large or binary. Operators can reveal it.";
export const notDisplayable = "Too large, or not displayable.";
export const encryptedWith = (key: string) => `Encrypted with ${key ? `key ${key}` : "an unknown key"}.`;
export const storedElsewhere = (size: string) => `Stored outside of the database, ${size}.`;
export const encryptedElsewhere = (key: string, size: string) =>
  `Encrypted with ${key ? `key ${key}` : "an unknown key"}, and stored outside of the database, ${size}.`;
export const revealDecrypts = "Reveal decrypts it.";
export const revealFetches = "Reveal fetches it from the store.";
export const revealFetchesAndDecrypts = "Reveal fetches it from the store and decrypts it.";
export const noKey = "This service does not have the key.";
export const noStore = "This service has no store of large bodies.";
export const noKeyOrStore = "This service lacks the key or the store of large bodies.";
export const unreadable = (why: string) => `It could not be read: ${why}.`;
export const charactersShown = (shown: number, total: number) =>
  `${number(shown)} of ${number(total)} characters.`;
export const masked = "masked";
export const showCharacters = (count: number) => `Show all ${number(count)} characters`;
export const showMoreItems = (count: number, total: number) =>
  `Show ${number(count)} more of ${number(total)}`;
export const members = (count: number) => `{ ${plural(count, "member")} }`;
export const elements = (count: number) => `[ ${plural(count, "item")} ]`;
