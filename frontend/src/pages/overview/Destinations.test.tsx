import { render, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Backlog } from "~/api/backlog";
import { Destinations } from "./Destinations";

function shown(destinations: Backlog["destinations"]) {
  return render(<Destinations backlog={{ destinations } as Backlog} />);
}

it("shows what waits for each destination and whether a relay serves it", () => {
  shown([
    {
      destination: "default",
      unsent: { value: 3, relation: "eq" },
      oldest_pending_age_seconds: null,
      relay_count: 2,
      sends_to: "rabbit:5672, exchange outbox",
    },
    {
      destination: "kafka",
      unsent: { value: 120_000, relation: "about" },
      oldest_pending_age_seconds: 90,
      relay_count: 0,
      sends_to: null,
    },
    {
      destination: "lake",
      unsent: { value: 0, relation: "eq" },
      oldest_pending_age_seconds: null,
      relay_count: null,
      sends_to: null,
    },
  ]);
  const [first, second, third] = screen.getAllByRole("listitem").map((item) => within(item));
  expect(first?.getByText("rabbit:5672, exchange outbox")).toBeTruthy();
  expect(first?.getByText("2 relays")).toBeTruthy();
  expect(second?.getByRole("link", { name: "kafka" }).getAttribute("href")).toContain(
    "/messages?destination=kafka",
  );
  expect(second?.getByText("≈ 120,000")).toBeTruthy();
  expect(second?.getByText("oldest due for 1 min 30 s")).toBeTruthy();
  expect(second?.getByText("no relay")).toBeTruthy();
  expect(third?.getByText("relays unknown")).toBeTruthy();
});

it("shows nothing for an outbox with one destination", () => {
  expect(shown([]).container.innerHTML).toBe("");
});
