import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { Line } from "~/api/dead-letters";
import { Row } from "./Row";

const line = {
  id: "17",
  status: "open",
  queue: "orders",
  routing_key: "order.placed",
  destination: null,
  error: { type: "shop.errors.Refused", message: "<b>no</b>", traceback: null },
  failure_count: 3,
  dead_letter_count: 2,
  failed_at: "2026-01-01T00:00:00Z",
  preview: "<script>alert(1)</script>",
} as Line;

const PROPS = { selected: false, open: false, gone: false, onToggle: () => undefined };

function renderRow(status: Line["status"] = "open") {
  const onToggle = vi.fn();
  render(<Row line={{ ...line, status }} selected={false} open={false} gone={false} onToggle={onToggle} />);
  return onToggle;
}

describe("a row of the list", () => {
  it("is selected by its checkbox; Shift extends the selection, anywhere on the row", async () => {
    const onToggle = renderRow();
    const user = userEvent.setup();
    await user.click(screen.getByRole("checkbox", { name: "Select dead letter 17" }));
    expect(onToggle).toHaveBeenLastCalledWith("17", false);
    await user.keyboard("{Shift>}");
    await user.click(screen.getByRole("link"));
    expect(onToggle).toHaveBeenLastCalledWith("17", true);
    await user.click(screen.getByRole("checkbox"));
    expect(onToggle).toHaveBeenCalledTimes(3);
    expect(onToggle).toHaveBeenLastCalledWith("17", true);
  });

  it("shows content as text, and that it failed again", () => {
    renderRow();
    const link = screen.getByRole("link");
    expect(link.textContent).toContain("<b>no</b>");
    expect(link.textContent).toContain("<script>alert(1)</script>");
    expect(link.textContent).toContain("failed again");
    expect(link.querySelector("script, b:not(strong)")).toBeNull();
  });

  it("names a destination that is not the default one", () => {
    const { rerender } = render(<Row {...PROPS} line={{ ...line, destination: "kafka" }} />);
    expect(screen.getByText("for kafka")).toBeDefined();
    for (const destination of ["default", null]) {
      rerender(<Row {...PROPS} line={{ ...line, destination }} />);
      expect(screen.queryByText(/^for /)).toBeNull();
    }
  });

  it("no longer says that it failed again once it is requeued again", () => {
    renderRow("requeued");
    const link = screen.getByRole("link");
    expect(link.textContent).toContain("requeued");
    expect(link.textContent).not.toContain("failed again");
  });
});
