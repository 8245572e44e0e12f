import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { Review } from "./Review";

it("shows the changes without loading more code, which an update of the service may have removed", () => {
  const base = { version: 1, compact: false, form: "text" as const, body: "one", headers: "{}" };
  render(<Review base={base} draft={{ ...base, body: "two" }} reason="" onReason={() => {}} />);
  expect(screen.getByRole("table", { name: "Changes in the body" }).textContent).toContain("two");
});
