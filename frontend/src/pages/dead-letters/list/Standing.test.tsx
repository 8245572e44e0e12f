import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Page } from "~/api/dead-letters";
import { Standing } from "./Standing";

function found(count: number, second: number): Page {
  const as_of = `2026-11-20T20:00:0${second}.000Z`;
  const unarchived = { count, queues: { mail: count }, as_of };
  return {
    scope: "",
    items: [],
    total: undefined,
    facets: undefined,
    next: null,
    previous: null,
    degraded: [],
    unarchived,
  };
}

const told = () => screen.queryByText(/still lies? at the broker/)?.textContent;

describe("what the list does not have", () => {
  it("is told once it lay at the broker at two counts, for archivers take what has just come", () => {
    const { rerender } = render(<Standing page={found(1, 0)} />);
    rerender(<Standing page={found(1, 0)} />);
    expect(told()).toBeUndefined();
    rerender(<Standing page={found(0, 5)} />);
    rerender(<Standing page={found(2, 6)} />);
    expect(told()).toBeUndefined();
    rerender(<Standing page={found(2, 9)} />);
    expect(screen.getByText("2 more dead letters")).toBeDefined();
    rerender(<Standing page={found(0, 9)} />);
    expect(told()).toBeUndefined();
  });
});
