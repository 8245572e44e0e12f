import { describe, expect, it } from "vitest";
import type { Line } from "~/api/dead-letters";
import { changesOf } from "./changes";

/** Rows that failed at these seconds, which are also their IDs. */
function lines(...seconds: number[]): Line[] {
  return seconds.map((second) => {
    const failed_at = new Date(second * 1000).toISOString();
    return { id: String(second), failed_at } as Line;
  });
}

describe("rows of a paged list", () => {
  it("are not gone if new rows pushed them to the next page", () => {
    const { gone, fresh } = changesOf(
      lines(5, 4, 3),
      { items: lines(7, 6, 5), next: "older", previous: null },
      "newest",
    );
    expect([...gone]).toEqual([]);
    expect(fresh).toBe(2);
  });

  it("are gone if the page covers their position but no longer has them", () => {
    const { gone, fresh } = changesOf(
      lines(5, 4, 3),
      { items: lines(5, 3, 2), next: "older", previous: null },
      "newest",
    );
    expect([...gone]).toEqual(["4"]);
    expect(fresh).toBe(0);
  });

  it("are all gone if the list is empty, in either order", () => {
    for (const sort of ["newest", "oldest"] as const) {
      const empty = { items: [], next: null, previous: null };
      expect([...changesOf(lines(2, 1), empty, sort).gone]).toEqual(["2", "1"]);
    }
  });
});
