import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { bars, Sparkline } from "./Sparkline";

describe("sparkline", () => {
  it("draws the most as high as its place, one among thousands still visibly, and nothing for 0", () => {
    expect(bars([0, 10_000, 1, 0]).map(({ x, height }) => [x, height])).toEqual([
      [24, 24],
      [48, 2],
    ]);
    expect(bars([])).toEqual([]);
  });

  it("says what it shows to those who do not see it", () => {
    render(<Sparkline values={[1, 2]} label="Deaths in each of the last two hours: 1, 2" />);
    expect(screen.getByRole("img", { name: "Deaths in each of the last two hours: 1, 2" })).toBeTruthy();
  });
});
