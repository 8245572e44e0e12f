// The draft of an edit: body and headers as text, and the edit request that results from it.

import type { DeadLetter, Edit } from "~/api/dead-letter";
import { findJsonProblem, readJson, tryReadJson, writeJson } from "~/lib/json";
import * as texts from "~/texts/editing";

/** Format of the body in the editor: validated JSON, plain text, or bytes as base64. */
export type Form = "json" | "text" | "base64";

export interface Draft {
  form: Form;
  body: string;
  headers: string;
}

/** The content that the editor starts with, and its version. */
export interface Base extends Draft {
  version: number;
  /** Whether the JSON was on one line. It is then sent on one line again. */
  compact: boolean;
}

const RESERVED = "x-outbox-";

/** Whether content is masked or truncated, so that the dead letter cannot be edited as shown. */
export function isHidden({ body, headers }: DeadLetter): boolean {
  return body.masked || body.truncated || body.content === null || writeJson(headers).includes("***");
}

export function baseOf({ body, headers, version }: DeadLetter): Base {
  return { version, headers: writeJson(headers, 2), ...bodyOf(body.content ?? "", body.encoding ?? "text") };
}

/** Returns the base for a body that was loaded separately. */
export function baseOfBytes(deadLetter: DeadLetter, bytes: Uint8Array): Base {
  const text = textOf(bytes);
  const body =
    text === undefined ? bodyOf(base64Of(bytes), "base64") : bodyOf(text, deadLetter.body.encoding ?? "text");
  return { version: deadLetter.version, headers: writeJson(deadLetter.headers, 2), ...body };
}

function bodyOf(content: string, encoding: Form): Pick<Base, "form" | "body" | "compact"> {
  const tree = encoding === "json" ? tryReadJson(content) : undefined;
  // Invalid JSON is edited as text. Otherwise not even the headers could be changed.
  if (encoding === "json" && !tree) return { form: "text", body: content, compact: false };
  const compact = tree !== undefined && !content.includes("\n");
  if (!tree || !compact) return { form: encoding, body: content, compact: false };
  return { form: "json", body: writeJson(tree, 2), compact };
}

/** Whether the draft equals the base. */
export function isUnchanged(base: Base, draft: Draft): boolean {
  const edit = editOf(base, draft);
  return edit.body === undefined && edit.headers === undefined;
}

/** Returns the edit, with changed parts only. The draft has to be valid. */
export function editOf(base: Base, draft: Draft): Edit {
  const edit: Edit = { version: base.version };
  if (draft.form !== base.form || draft.body !== base.body) edit.body = contentOf(base, draft);
  if (!sameJson(draft.headers, base.headers)) edit.headers = writeJson(readJson(draft.headers));
  return edit;
}

function contentOf({ compact }: Base, { form, body }: Draft): NonNullable<Edit["body"]> {
  if (form === "base64") return { encoding: "base64", content: body.replace(/\s+/g, "") };
  return { encoding: "text", content: form === "json" && compact ? writeJson(readJson(body)) : body };
}

function sameJson(one: string, other: string): boolean {
  const [first, second] = [tryReadJson(one), tryReadJson(other)];
  return first && second ? writeJson(first) === writeJson(second) : one === other;
}

/** Returns what is wrong with the body; undefined if it is valid. */
export function wrongBody({ form, body }: Draft): string | undefined {
  if (form === "json") return jsonErrorIn(body);
  if (form === "base64" && bytesOf(body) === undefined) {
    return texts.notBase64;
  }
  return undefined;
}

export function wrongHeaders({ headers }: Draft): string | undefined {
  const wrong = jsonErrorIn(headers);
  if (wrong) return wrong;
  const tree = readJson(headers);
  if (tree.kind !== "object") return texts.headersNotObject;
  const keys = tree.members.map(({ key }) => key);
  const locked = keys.find((key) => key.toLowerCase().startsWith(RESERVED));
  if (locked) return texts.lockedHeader(locked);
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  return twice === undefined ? undefined : texts.duplicateHeader(twice);
}

function jsonErrorIn(text: string): string | undefined {
  const wrong = findJsonProblem(text);
  return wrong && texts.jsonError(wrong.line, wrong.column, texts.jsonFaults[wrong.fault]);
}

/** Converts the body to another format; undefined if that is impossible. */
export function inForm({ form, body }: Draft, wanted: Form): string | undefined {
  if (form === wanted || (form !== "base64" && wanted !== "base64")) return body;
  if (wanted === "base64") return base64Of(new TextEncoder().encode(body));
  const bytes = bytesOf(body);
  return bytes && textOf(bytes);
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined; // The editor reports it as invalid.
  }
}

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/.{76}(?=.)/g, "$&\n");
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // Bytes that are not text stay bytes.
  }
}
