import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { bars, Sparkline } from "./Sparkline";

describe("sparkline", () => {
  it("scales bars to the maximum, keeps small values visible, and draws nothing for 0", () => {
    expect(bars([0, 10_000, 1, 0]).map(({ x, height }) => [x, height])).toEqual([
      [24, 24],
      [48, 2],
    ]);
    expect(bars([])).toEqual([]);
  });

  it("has an accessible name", () => {
    render(<Sparkline values={[1, 2]} label="Dead letters in each of the last two hours: 1, 2" />);
    expect(
      screen.getByRole("img", { name: "Dead letters in each of the last two hours: 1, 2" }),
    ).toBeTruthy();
  });
});
