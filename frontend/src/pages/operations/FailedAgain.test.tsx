import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { FAILURES_FIRST, type Operation } from "~/api/operations";
import { FailedAgain } from "./FailedAgain";

it("links to the dead letters of the operation that failed again", () => {
  render(<FailedAgain of={{ id: "7", failed_again_count: 2 } as Operation} />);
  expect(screen.getByRole("link").getAttribute("href")).toBe("/operations/7?outcome=failed_again");
  expect(FAILURES_FIRST).toContain("failed_again");
});
