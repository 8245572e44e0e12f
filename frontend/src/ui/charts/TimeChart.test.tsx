import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { setPreferences } from "~/lib/preferences";
import type { Line, Steps } from "./lines";
import { TimeChart } from "./TimeChart";

vi.mock("./Plot", () => ({ Plot: () => null }));

const start = Date.parse("2026-11-20T20:00:00Z") / 1000;
const steps: Steps = {
  from: start,
  to: start + 180,
  step: 60,
  startsAt: [start, start + 60, start + 120],
  complete: [true, true, false],
};

function chart(values: (number | null)[]) {
  setPreferences({ zone: "utc" });
  const line: Line = { name: "Backlog", meaning: "", values, colour: 1, mark: "none", format: String };
  return (
    <TimeChart
      label="Backlog over time"
      steps={steps}
      lines={[line]}
      empty="No relay ran."
      gaps="Gaps: no relay ran."
      onBrush={() => {}}
    />
  );
}

describe("a chart over time", () => {
  it("explains what missing data means", () => {
    render(chart([null, null, null]));
    expect(screen.getByText("No relay ran.")).toBeTruthy();
    expect(screen.queryByRole("figure")).toBeNull();
  });

  it("shows the latest complete values, and explains gaps", () => {
    render(chart([null, 7, 2]));
    const figure = screen.getByRole("figure", { name: "Backlog over time" });
    expect(within(figure).getByText("7")).toBeTruthy();
    expect(within(figure).getByText(/Gaps: no relay ran\./)).toBeTruthy();
  });

  it("shows a table, newest first, that marks incomplete steps", async () => {
    render(chart([null, 7, 2]));
    const button = screen.getByRole("button", { name: "Show table" });
    expect(button.getAttribute("aria-expanded")).toBe("false");
    await userEvent.click(button);
    const heads = screen.getAllByRole("rowheader").map(({ textContent }) => textContent);
    expect(heads).toHaveLength(2);
    expect(heads[0]).toMatch(/20:02 – .*20:03 \(incomplete\)$/);
  });
});
