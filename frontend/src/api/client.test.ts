import { QueryClient } from "@tanstack/react-query";
import { expect, it, vi } from "vitest";
import { toFailure } from "./problems";

vi.hoisted(() => {
  const headers = { "content-type": "text/html" };
  globalThis.fetch = async () => new Response("<html>Log in to the proxy</html>", { headers });
});
const { backlog } = await import("./backlog");
const { deadLetter } = await import("./dead-letter");
const { message } = await import("./messages");

it("says that a proxy may have answered, if a successful response is no JSON", async () => {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  for (const read of [
    () => queries.fetchQuery(backlog),
    () => queries.fetchQuery(deadLetter("17")),
    () => queries.fetchQuery(message("17")),
  ]) {
    const thrown = await read().catch((thrown: unknown) => thrown);
    expect(toFailure(thrown).title).toBe("Unexpected response: not JSON");
    expect(toFailure(thrown).message).toContain(
      "A proxy between this page and the service may have sent it.",
    );
  }
});
