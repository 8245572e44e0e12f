import { describe, expect, it } from "vitest";
import type { DeadLetter } from "~/api/dead-letter";
import { readJson } from "~/lib/json";
import { baseOf, baseOfBytes, editOf, inForm, isHidden, isUnchanged, wrongBody, wrongHeaders } from "./draft";

function letter(
  content: string | null,
  encoding: "json" | "text" | "base64" | null,
  headers = "{}",
): DeadLetter {
  const body = { content, encoding, masked: false, truncated: false, size: 1, content_type: null };
  return { version: 4, body, headers: readJson(headers) } as DeadLetter;
}

const base = baseOf(letter('{"n":9007199254740993,"a":1.50}', "json", '{"big":9007199254740993}'));

describe("an edit", () => {
  it("shows JSON on many lines, and sends it on one, digit by digit, as it was", () => {
    expect(base.body).toBe('{\n  "n": 9007199254740993,\n  "a": 1.50\n}');
    expect(isUnchanged(base, base)).toBe(true);
    const edit = editOf(base, { ...base, body: base.body.replace("1.50", "1.60") });
    expect(edit).toEqual({
      version: 4,
      body: { encoding: "text", content: '{"n":9007199254740993,"a":1.60}' },
    });
  });

  it("sends headers only when they differ in more than their layout", () => {
    expect(isUnchanged(base, { ...base, headers: '{"big":9007199254740993}' })).toBe(true);
    expect(editOf(base, { ...base, headers: '{"big":9007199254740994}' })).toEqual({
      version: 4,
      headers: '{"big":9007199254740994}',
    });
  });

  it("takes what calls itself JSON and is none as text, so that its headers can be edited alone", () => {
    const broken = baseOf(letter('{"order_id": broken', "json"));
    expect(broken).toMatchObject({ form: "text", body: '{"order_id": broken' });
    expect(wrongBody(broken)).toBeUndefined();
    expect(editOf(broken, { ...broken, headers: '{"x-tenant":"acme"}' }).body).toBeUndefined();
  });

  it("says what is wrong, and where", () => {
    expect(wrongBody({ ...base, body: '{\n  "a": 1,\n}' })).toMatch(/^Line 3, column 1: /);
    expect(wrongBody({ ...base, form: "text", body: "{" })).toBeUndefined();
    expect(wrongBody({ ...base, form: "base64", body: "%%%" })).toMatch(/Invalid base64/);
    expect(wrongHeaders({ ...base, headers: '{"X-Outbox-Hlc":1}' })).toMatch(/reserved/);
    expect(wrongHeaders({ ...base, headers: "[]" })).toMatch(/object/);
    expect(wrongHeaders({ ...base, headers: '{"a":1,"a":2}' })).toMatch(/twice/);
  });

  it("turns text into bytes and back, and bytes that are no text stay bytes", () => {
    const draft = { ...base, form: "text" as const, body: "é" };
    expect(inForm(draft, "base64")).toBe("w6k=");
    expect(inForm({ ...draft, form: "base64", body: "w6k=" }, "text")).toBe("é");
    expect(inForm({ ...draft, form: "base64", body: "/w==" }, "text")).toBeUndefined();
    expect(baseOfBytes(letter(null, "json"), new Uint8Array([0xff, 0xfe]))).toMatchObject({
      form: "base64",
      body: "//4=",
    });
  });

  it("needs what is masked, cut or not shown to be seen first", () => {
    expect(isHidden(letter("{}", "json"))).toBe(false);
    expect(isHidden(letter(null, null))).toBe(true);
    expect(isHidden(letter("{}", "json", '{"authorization":"***"}'))).toBe(true);
  });
});
