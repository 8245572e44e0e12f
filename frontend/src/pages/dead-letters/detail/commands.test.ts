import { describe, expect, it } from "vitest";
import { command, curl, quoted } from "./commands";

const API = "https://ops.example.com/a/b/outbox/";

describe("the shell command of an action", () => {
  it("is the same request, with the token as a variable", () => {
    expect(curl("requeue", "outbox-17", API)).toBe(
      `curl -sS -X POST https://ops.example.com/a/b/outbox/requeue -H "Authorization: Bearer $OUTBOX_TOKEN" -H 'Content-Type: application/json' --data-raw '{"selector":{"ids":["outbox-17"]}}'`,
    );
    expect(curl("show", "17", API)).toBe(
      'curl -sS https://ops.example.com/a/b/outbox/dlq/17 -H "Authorization: Bearer $OUTBOX_TOKEN"',
    );
    expect(command("requeue", "17", API)).toBe(
      'OUTBOX_TOKEN="$OUTBOX_TOKEN" outbox dlq requeue 17 --url https://ops.example.com/a/b/outbox',
    );
  });

  it("quotes shell metacharacters", () => {
    expect(quoted("it's $(rm -rf /) `x`")).toBe("'it'\\''s $(rm -rf /) `x`'");
    expect(quoted("")).toBe("''");
  });
});
