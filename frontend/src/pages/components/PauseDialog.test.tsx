import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { newQueryClient } from "~/api/queries";

/** The pauses that were requested, none of which gets a response. */
const requested = vi.hoisted(() => {
  const found: { expires_at: string }[] = [];
  globalThis.fetch = async (input) => {
    found.push((await (input as Request).json()) as { expires_at: string });
    throw new TypeError("no response");
  };
  return found;
});

const { PauseDialog } = await import("./PauseDialog");

it("ends a pause as chosen last, and a repeated request as before", async () => {
  render(
    <QueryClientProvider client={newQueryClient()}>
      <PauseDialog target={{ scope: "queue", name: "mail" }} components={[]} onClose={() => {}} />
    </QueryClientProvider>,
  );
  const ends = screen.getByLabelText("Ends");
  const submit = async () => {
    await userEvent.click(screen.getByRole("button", { name: "Pause the queue mail" }));
    await screen.findByText("The service does not respond.");
  };
  await userEvent.selectOptions(ends, "In 15 minutes");
  await submit();
  await submit();
  await userEvent.selectOptions(ends, "In 1 day");
  await submit();
  const [first, again, last] = requested.map(({ expires_at }) => new Date(expires_at).getTime());
  expect(again).toBe(first);
  expect((last as number) - (first as number)).toBeGreaterThan(23 * 3_600_000);
});
