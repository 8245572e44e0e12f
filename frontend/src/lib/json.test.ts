import { describe, expect, it } from "vitest";
import { findJsonProblem, JsonError, memberOf, positionOf, readJson, tryReadJson, writeJson } from "./json";

describe("readJson", () => {
  it("keeps numbers exactly as written", () => {
    const numbers = ["9007199254740993", "-0", "1.50", "2e400", "0.1E-7", "123456789012345678901234567890"];
    expect(writeJson(readJson(`[${numbers.join(",")}]`))).toBe(`[${numbers.join(",")}]`);
  });

  it("keeps the order of members, and duplicate keys", () => {
    const node = readJson('{"b": 1, "2": true, "b": null, "": "x"}');
    expect(writeJson(node)).toBe('{"b":1,"2":true,"b":null,"":"x"}');
    expect(memberOf(node, "b")).toEqual({ kind: "literal", source: "null" });
  });

  it("decodes escapes, and leaves the rest of strings unchanged", () => {
    const text = String.raw`"\u00e9\n\"\\\/ \ud83d\ude00 <b>é😀</b>"`;
    expect(readJson(text)).toEqual({ kind: "string", value: JSON.parse(text) });
  });

  it("accepts and rejects the same texts as JSON.parse", () => {
    const texts = [
      ...[" [ ] ", "{}", "0", '"a"', "[1,[2,{}]]", ' {"a" : [ 1 , 2 ] } ', "\t\r\nnull\n", "[[],[{}],0]"],
      ...[
        "",
        " ",
        "[",
        "]",
        "{",
        "[1,]",
        "[,1]",
        "[1 2]",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        "{a:1}",
        "01",
        "1.",
        ".5",
      ],
      ...[
        "+1",
        "1e",
        "--1",
        "nul",
        "nulll",
        "NaN",
        "'a'",
        '"a',
        '"\t"',
        String.raw`"\x"`,
        String.raw`"\u12"`,
        "1 2",
      ],
      ...["[1]]", "{}{}", "\u00a01", "\ufeff1", '{"a":1 "b":2}', "[}", '{"a":[}', "true false"],
    ];
    for (const text of texts) {
      expect([text, tryReadJson(text) !== undefined]).toEqual([text, isJson(text)]);
    }
  });

  it("reports the position of an error", () => {
    expect(() => readJson('{"a": [1, 2')).toThrow("no_bracket at character 12");
    expect(() => readJson("[1, x]")).toThrow(JsonError);
  });

  it("reads deeply nested and large documents", () => {
    const deep = 100_000;
    let node = readJson("[".repeat(deep) + "]".repeat(deep));
    let depth = 1;
    for (; node.kind === "array" && node.items[0]; node = node.items[0]) depth += 1;
    expect(depth).toBe(deep);
    const wide = readJson(
      JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}` }))),
    );
    expect(wide.kind === "array" && wide.items.length).toBe(20_000);
    const long = "a".repeat(1_000_000);
    const text = readJson(`"${long}"`);
    expect(text.kind === "string" && text.value === long).toBe(true);
  });
});

describe("JSON as text", () => {
  it("keeps numbers, order and duplicate keys when written", () => {
    const text = '{"b":9007199254740993,"a":[1.50,-0,1e400,{}],"b":[],"\\u00e9":"\\n\\"</script>"}';
    expect(writeJson(readJson(text))).toBe(text.replace("\\u00e9", "é"));
    expect(readJson(writeJson(readJson(text), 2))).toEqual(readJson(text));
    expect(writeJson(readJson('{"a":[1,{"b":null}],"c":{}}'), 2)).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {}\n}',
    );
  });

  it("reports line and column of an error, and undefined for valid JSON", () => {
    expect(findJsonProblem('{\n  "a": 1,\n}')).toMatchObject({ line: 3, column: 1 });
    expect(findJsonProblem("[1, tru]")).toMatchObject({ line: 1, column: 5, fault: "no_value" });
    expect(findJsonProblem("[1]")).toBeUndefined();
    expect(positionOf("ab\ncd", 4)).toEqual({ line: 2, column: 2 });
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
