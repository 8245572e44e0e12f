// Texts of the dialog that edits and requeues a dead letter.

import { plural } from "~/lib/format";
import type { JsonFault } from "~/lib/json";

export const json = "JSON, checked as you type";
export const text = "Text, sent unchanged";
export const base64 = "Bytes, as base64";
export const jsonHint = "Valid JSON. Numbers are sent exactly as written.";
export const textHint = "Sent unchanged as UTF-8. The consumer may expect another format.";
export const base64Hint = "Bytes as base64. Line breaks are ignored.";
export const staysBase64 = "The bytes are not valid text and stay as base64.";
export const format = "Format";
export const noContentType = "no content type";
export const validJsonFirst = "Requires valid JSON.";
export const tidy = "Format";
export const body = "Body";
export const unchanged = (title: string) => `${title}: unchanged.`;
export const changesOf = (title: string) => `Changes in the ${title}`;
export const changeKinds = { added: "added: ", removed: "removed: ", same: "" };
export const sameLines = (count: number) => `${plural(count, "unchanged line")}`;
export const titleOf = (id: string) => `Edit dead letter ${id}`;
export const done = (id: string) => `Dead letter ${id} was edited and requeued.`;
export const stepTitle = (edit: boolean, id: string) =>
  `${edit ? "Edit" : "Requeue edited"} dead letter ${id}`;
export const editHint = "Nothing is sent yet. You review your changes first.";
export const reviewHint = "Review your changes. The previous content is kept as an earlier version.";
export const noChanges = "No changes yet.";
export const review = "Review changes";
export const back = "Back to the editor";
export const noChangesLeft = "No changes left.";
export const requeue = "Requeue";
export const part = "Edit";
export const headers = "Headers";
export const headersHint = "A JSON object. Headers that you leave out are removed.";
export const lockedHint = "System headers, kept unchanged:";
export const locked = "locked";
export const notRequeued = "Not requeued.";
export const changedMeanwhile = "It may have been requeued or discarded by another user. Reload it.";
export const schemaViolation = "The consumer's schema rejects the edited message.";
export const requeueAnyway = "Requeue anyway";
export const conflict = "The dead letter was changed by another user.";
export const conflictHint = (version: number, revealed: boolean) =>
  `You edited version ${version}. Your input is kept. Compare it with the current version, then requeue.${revealed ? " Masked values are revealed again, which is written to the audit log." : ""}`;
export const compare = "Compare with the current version";
export const reason = "Reason (optional)";
export const reasonHint = "Why you edited the message. Kept in the audit log.";
export const revealHint = (truncated: boolean, size: string) =>
  `${truncated ? `The body (${size}) is larger than shown here. Editing loads it in full, unmasked.` : "This dead letter contains masked values. Editing requires revealing them, so that masks are not sent."} Revealing is written to the audit log under your name.`;
export const cannotEdit = (why: string) => `The body cannot be edited here. ${why}`;
export const revealSealedHint =
  "The body is encrypted, or stored outside of the database. Editing loads it in full, and keeps the new one in the same way. Revealing is written to the audit log under your name.";
export const revealAndEdit = "Reveal and edit";
export const notBase64 = "Invalid base64. Use letters, digits, + and / in groups of four, with = at the end.";
export const headersNotObject = "Headers must be a JSON object: { … }.";
export const lockedHeader = (name: string) => `The header “${name}” is reserved. Remove it.`;
export const duplicateHeader = (name: string) => `The header “${name}” occurs twice.`;
export const jsonError = (line: number, column: number, what: string) =>
  `Line ${line}, column ${column}: ${what}.`;
export const jsonFaults: Readonly<Record<JsonFault, string>> = {
  bad_escape: "invalid escape in a string",
  no_brace: '"," or "}" is missing',
  no_bracket: '"," or "]" is missing',
  no_colon: '":" is missing',
  no_end: "the document ends too early",
  no_string: "a string in double quotes is missing",
  no_value: "a value is missing",
  trailing_text: "text after the end of the document",
  unclosed_string: "the string has no end",
};
