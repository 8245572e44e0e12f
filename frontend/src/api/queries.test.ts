import { expect, it } from "vitest";
import { Failure } from "./problems";
import { newQueryClient } from "./queries";

it("asks who is looking again once a change is refused because the session has ended", async () => {
  const queries = newQueryClient();
  queries.setQueryData(["session"], { name: "ada" });
  const refuse = (code: "unauthenticated" | "forbidden", status: number) =>
    queries
      .getMutationCache()
      .build(queries, {
        mutationFn: () => Promise.reject(new Failure({ code, status, title: "No", detail: "No." })),
      })
      .execute(undefined)
      .catch(() => {});
  await refuse("forbidden", 403);
  expect(queries.getQueryData(["session"])).toEqual({ name: "ada" });
  await refuse("unauthenticated", 401);
  expect(queries.getQueryData(["session"])).toBeUndefined();
});
