import { keepPreviousData, QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { AsOf } from "./AsOf";
import { Empty, Loaded } from "./Loaded";
import { Table } from "./Table";

/** Answers of the server by filter, for which each request waits. */
const answers = new Map<string, readonly string[]>();
beforeEach(() => answers.clear());

function List({ filter }: { filter: string }) {
  const query = useQuery({
    queryKey: [filter],
    queryFn: () => vi.waitUntil(() => answers.get(filter), 30_000),
    placeholderData: keepPreviousData,
  });
  return (
    <Loaded query={query}>
      {(rows) => (
        <>
          <AsOf at={query.dataUpdatedAt} />
          {rows.length === 0 ? (
            <Empty title={`Nothing is ${filter}`} />
          ) : (
            <Table label="Rows" head={["Name"]}>
              {rows.map((row) => (
                <tr key={row}>
                  <td>{row}</td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}
    </Loaded>
  );
}

function renderList() {
  const queries = new QueryClient();
  const tree = (filter: string) => (
    <QueryClientProvider client={queries}>
      <List filter={filter} />
    </QueryClientProvider>
  );
  const { rerender } = render(tree("discarded"));
  return (filter: string) => rerender(tree(filter));
}

it("does not say that nothing matches a filter before its result is there", async () => {
  const choose = renderList();
  answers.set("discarded", []);
  await screen.findByText("Nothing is discarded");
  choose("open");
  expect(screen.queryByText("Nothing is open")).toBeNull();
  expect(screen.getByRole("status").textContent).toBe("Loading …");
  answers.set("open", []);
  await screen.findByText("Nothing is open");
});

it("marks the rows of another filter until its result is there", async () => {
  const choose = renderList();
  const isBusy = () => screen.getByRole("region", { name: "Rows" }).getAttribute("aria-busy");
  answers.set("discarded", ["a", "b"]);
  await screen.findByText("a");
  expect(isBusy()).toBe("false");
  choose("open");
  expect(screen.getByText("a")).toBeDefined();
  expect(isBusy()).toBe("true");
  answers.set("open", ["c"]);
  await screen.findByText("c");
  expect(isBusy()).toBe("false");
});

it("shows no age of a result that is not there yet", async () => {
  const choose = renderList();
  answers.set("discarded", ["a", "b"]);
  await screen.findByText("as of 0 s ago");
  choose("open");
  expect(screen.getByText("b")).toBeDefined();
  expect(screen.queryByText(/as of/)).toBeNull();
});
