import { describe, expect, it } from "vitest";
import { writeJson } from "~/lib/json";
import { parseDeadLetter, requestText } from "./dead-letter";

describe("dead letter requests and responses", () => {
  it("preserves the digits of numbers in headers, also in editions", () => {
    const letter = parseDeadLetter(
      '{"id":"17","headers":{"big":9007199254740993},"properties":{"p":1.50},"editions":[{"version":1,"headers":{"n":12345678901234567890}},{"version":2,"headers":null}]}',
    );
    expect(writeJson(letter.headers)).toBe('{"big":9007199254740993}');
    expect(writeJson(letter.properties)).toBe('{"p":1.50}');
    expect(letter.editions.map(({ headers }) => headers && writeJson(headers))).toEqual([
      '{"n":12345678901234567890}',
      undefined,
    ]);
  });

  it("sends only the edited parts: the body as text, the headers with all digits", () => {
    const edited = requestText("17", {
      edit: {
        version: 3,
        body: { encoding: "text", content: '{"n":9007199254740993}' },
        headers: '{"big":9007199254740993}',
      },
      reason: " the total was missing ",
      force: false,
    });
    expect(edited).toContain('"headers":{"big":9007199254740993}');
    expect(JSON.parse(edited)).toMatchObject({
      selector: { ids: ["17"] },
      force: false,
      reason: "the total was missing",
      edit: { version: 3, encoding: "text", body: '{"n":9007199254740993}' },
    });
    const headers = requestText("17", { edit: { version: 1, headers: "{}" }, reason: "", force: true });
    expect(JSON.parse(headers)).toEqual({
      selector: { ids: ["17"] },
      force: true,
      reason: null,
      edit: { version: 1, headers: {} },
    });
  });
});
