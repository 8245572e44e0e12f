import { expect, it } from "vitest";
import { Failure } from "./problems";
import { newQueryClient } from "./queries";

it("reloads the session after a mutation fails with 401", async () => {
  const queries = newQueryClient();
  queries.setQueryData(["session"], { name: "ada" });
  const failWith = (code: "unauthenticated" | "forbidden", status: number) =>
    queries
      .getMutationCache()
      .build(queries, {
        mutationFn: () => Promise.reject(new Failure({ code, status, title: "No", detail: "No." })),
      })
      .execute(undefined)
      .catch(() => {});
  await failWith("forbidden", 403);
  expect(queries.getQueryState(["session"])?.isInvalidated).toBe(false);
  await failWith("unauthenticated", 401);
  expect(queries.getQueryState(["session"])?.isInvalidated).toBe(true);
});
