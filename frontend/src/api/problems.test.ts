import { describe, expect, it } from "vitest";
import { Failure, inOneLine } from "./problems";

describe("a failure in one line", () => {
  it("says what happened, with its code and the id of the request where there is one", () => {
    const facts = { code: "database_unavailable", title: "Away", detail: "Try again.", status: 503 } as const;
    expect(inOneLine(new Failure({ ...facts, requestId: "r1" }))).toBe(
      "Try again. Code database_unavailable, request r1.",
    );
    expect(inOneLine(new Failure(facts))).toBe("Try again. Code database_unavailable.");
    expect(inOneLine(new TypeError("x"))).toContain("Code unreachable.");
  });
});
