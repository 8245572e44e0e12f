import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { listenForShortcuts } from "~/lib/keyboard";
import { integer, text, useUrlState } from "~/lib/url-state";
import { type Filter, FilterBar } from ".";

const parameters = { queue: text, failures: integer(1, 9), cursor: text };
const filters: readonly Filter<"queue" | "failures">[] = [
  { name: "queue", label: "Queue", kind: "text", suggestions: ["mail", "billing"] },
  { name: "failures", label: "Failures", kind: "integer", min: 1, max: 9 },
];

beforeEach(() => window.history.replaceState(null, "", "/outbox/ui/dead-letters?cursor=abc&view=groups"));

describe("FilterBar", () => {
  it("sets a filter by keyboard, and returns to the first page", async () => {
    show();
    const stop = listenForShortcuts();
    await userEvent.keyboard("/que{Enter}");
    expect(field().getAttribute("aria-label")).toBe("Filter letters: Queue");
    await userEvent.keyboard("il{ArrowDown}{Enter}");
    stop();
    expect(window.location.search).toBe("?view=groups&queue=mail");
    expect(screen.getByRole("button", { name: "Queue: mail. Change it" })).toBeDefined();
  });

  it("accepts a suggestion on click", async () => {
    show();
    await userEvent.type(field(), "bill");
    await userEvent.click(screen.getByRole("option", { name: "Queue billing" }));
    expect(window.location.search).toContain("queue=billing");
    expect(field().getAttribute("aria-expanded")).toBe("false");
  });

  it("rejects an invalid value", async () => {
    show();
    await userEvent.type(field(), "Failures{Enter}12{Enter}");
    expect(window.location.search).not.toContain("failures");
    expect(field().getAttribute("aria-invalid")).toBe("true");
  });

  it("removes filters by their chips, by Backspace, and all at once", async () => {
    window.history.replaceState(null, "", "/outbox/ui/dead-letters?queue=mail&failures=3");
    show();
    await userEvent.click(screen.getByRole("button", { name: "Remove the filter Queue" }));
    expect(window.location.search).toBe("?failures=3");
    expect(document.activeElement).toBe(field());
    await userEvent.keyboard("{Backspace}");
    expect(window.location.search).toBe("");
    await userEvent.keyboard("Queue{Enter}mail{Enter}Failures{Enter}3{Enter}");
    await userEvent.click(screen.getByRole("button", { name: "Clear all" }));
    expect(window.location.search).toBe("");
  });
});

function show() {
  render(<TestFilterBar />);
}

function TestFilterBar() {
  const state = useUrlState(parameters);
  return (
    <FilterBar label="Filter letters" filters={filters} state={state} extraChanges={{ cursor: undefined }} />
  );
}

function field(): HTMLElement {
  return screen.getByRole("combobox");
}
