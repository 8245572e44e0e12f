import { describe, expect, it } from "vitest";
import { readJson } from "./json";
import { jsonProblemIn, positionOf, writeJson } from "./json-text";

describe("JSON as text", () => {
  it("is written with numbers, order and repeated keys as they were read", () => {
    const text = '{"b":9007199254740993,"a":[1.50,-0,1e400,{}],"b":[],"\\u00e9":"\\n\\"</script>"}';
    expect(writeJson(readJson(text))).toBe(text.replace("\\u00e9", "é"));
    expect(readJson(writeJson(readJson(text), 2))).toEqual(readJson(text));
    expect(writeJson(readJson('{"a":[1,{"b":null}],"c":{}}'), 2)).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {}\n}',
    );
  });

  it("says at which line and column it is wrong, and nothing when it is right", () => {
    expect(jsonProblemIn('{\n  "a": 1,\n}')).toMatchObject({ line: 3, column: 1 });
    expect(jsonProblemIn("[1, tru]")).toMatchObject({ line: 1, column: 5, fault: "no_value" });
    expect(jsonProblemIn("[1]")).toBeUndefined();
    expect(positionOf("ab\ncd", 4)).toEqual({ line: 2, column: 2 });
  });
});
