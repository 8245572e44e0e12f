import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { Dialog } from "./Dialog";

function asksBeforeLeaving(): boolean {
  const leaving = new Event("beforeunload", { cancelable: true });
  window.dispatchEvent(leaving);
  return leaving.defaultPrevented;
}

it("asks before the page is reloaded or left, only while it is open with unsaved input", () => {
  const dialog = (open: boolean, unsaved: boolean) => (
    <Dialog open={open} unsaved={unsaved} onClose={() => {}} title="Edit" />
  );
  const { rerender } = render(dialog(true, false));
  expect(asksBeforeLeaving()).toBe(false);
  rerender(dialog(true, true));
  expect(asksBeforeLeaving()).toBe(true);
  rerender(dialog(false, true));
  expect(asksBeforeLeaving()).toBe(false);
});
