import { describe, expect, it } from "vitest";
import { describeFailure, Failure } from "./problems";

describe("describeFailure", () => {
  it("returns the message with the code, and with the request id if there is one", () => {
    const facts = { code: "database_unavailable", title: "Away", detail: "Try again.", status: 503 } as const;
    expect(describeFailure(new Failure({ ...facts, requestId: "r1" }))).toBe(
      "Try again. Code database_unavailable, request r1.",
    );
    expect(describeFailure(new Failure(facts))).toBe("Try again. Code database_unavailable.");
    expect(describeFailure(new TypeError("x"))).toContain("Code unreachable.");
  });
});
