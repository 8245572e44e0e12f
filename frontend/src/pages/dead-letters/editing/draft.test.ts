import { describe, expect, it } from "vitest";
import type { DeadLetter } from "~/api/dead-letter";
import { readJson } from "~/lib/json";
import { baseOf, baseOfBytes, editOf, inForm, isHidden, isUnchanged, wrongBody, wrongHeaders } from "./draft";

function deadLetter(
  content: string | null,
  encoding: "json" | "text" | "base64" | null,
  headers = "{}",
): DeadLetter {
  const body = {
    content,
    encoding,
    masked: false,
    truncated: false,
    size: 1,
    content_type: null,
    access: null,
  };
  return { version: 4, body, headers: readJson(headers) } as DeadLetter;
}

const base = baseOf(deadLetter('{"n":9007199254740993,"a":1.50}', "json", '{"big":9007199254740993}'));

describe("an edit", () => {
  it("formats JSON for editing, and sends it compact with exact digits", () => {
    expect(base.body).toBe('{\n  "n": 9007199254740993,\n  "a": 1.50\n}');
    expect(isUnchanged(base, base)).toBe(true);
    const edit = editOf(base, { ...base, body: base.body.replace("1.50", "1.60") });
    expect(edit).toEqual({
      version: 4,
      body: { encoding: "text", content: '{"n":9007199254740993,"a":1.60}' },
    });
  });

  it("sends headers only if more than their layout changed", () => {
    expect(isUnchanged(base, { ...base, headers: '{"big":9007199254740993}' })).toBe(true);
    expect(editOf(base, { ...base, headers: '{"big":9007199254740994}' })).toEqual({
      version: 4,
      headers: '{"big":9007199254740994}',
    });
  });

  it("treats invalid JSON as text, so that the headers can still be edited", () => {
    const broken = baseOf(deadLetter('{"order_id": broken', "json"));
    expect(broken).toMatchObject({ form: "text", body: '{"order_id": broken' });
    expect(wrongBody(broken)).toBeUndefined();
    expect(editOf(broken, { ...broken, headers: '{"x-tenant":"acme"}' }).body).toBeUndefined();
  });

  it("reports errors with their position", () => {
    expect(wrongBody({ ...base, body: '{\n  "a": 1,\n}' })).toMatch(/^Line 3, column 1: /);
    expect(wrongBody({ ...base, form: "text", body: "{" })).toBeUndefined();
    expect(wrongBody({ ...base, form: "base64", body: "%%%" })).toMatch(/Invalid base64/);
    expect(wrongHeaders({ ...base, headers: '{"X-Outbox-Hlc":1}' })).toMatch(/reserved/);
    expect(wrongHeaders({ ...base, headers: "[]" })).toMatch(/object/);
    expect(wrongHeaders({ ...base, headers: '{"a":1,"a":2}' })).toMatch(/twice/);
  });

  it("converts between text and bytes; bytes that are not text stay bytes", () => {
    const draft = { ...base, form: "text" as const, body: "é" };
    expect(inForm(draft, "base64")).toBe("w6k=");
    expect(inForm({ ...draft, form: "base64", body: "w6k=" }, "text")).toBe("é");
    expect(inForm({ ...draft, form: "base64", body: "/w==" }, "text")).toBeUndefined();
    expect(baseOfBytes(deadLetter(null, "json"), new Uint8Array([0xff, 0xfe]))).toMatchObject({
      form: "base64",
      body: "//4=",
    });
  });

  it("requires revealing masked, truncated or hidden content first", () => {
    expect(isHidden(deadLetter("{}", "json"))).toBe(false);
    expect(isHidden(deadLetter(null, null))).toBe(true);
    expect(isHidden(deadLetter("{}", "json", '{"authorization":"***"}'))).toBe(true);
  });
});
