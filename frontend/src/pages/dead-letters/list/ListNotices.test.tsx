import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Page } from "~/api/dead-letters";
import { ListNotices } from "./ListNotices";

function found(count: number, second: number): Page {
  const as_of = `2026-11-20T20:00:0${second}.000Z`;
  const unarchived = { count, queues: { mail: count }, as_of };
  return {
    scope: "",
    filters: { status: "open" },
    items: [],
    total: undefined,
    facets: undefined,
    next: null,
    previous: null,
    degraded: [],
    unarchived,
  };
}

const notice = () => screen.queryByText(/at the broker (is|are) not archived yet/)?.textContent;

describe("the notice about dead letters at the broker", () => {
  it("appears only after two counts, because archivers take new ones right away", () => {
    const { rerender } = render(<ListNotices page={found(1, 0)} />);
    rerender(<ListNotices page={found(1, 0)} />);
    expect(notice()).toBeUndefined();
    rerender(<ListNotices page={found(0, 5)} />);
    rerender(<ListNotices page={found(2, 6)} />);
    expect(notice()).toBeUndefined();
    rerender(<ListNotices page={found(2, 9)} />);
    expect(screen.getByText(/^2 dead letters at the broker/)).toBeDefined();
    rerender(<ListNotices page={found(0, 9)} />);
    expect(notice()).toBeUndefined();
  });
});
