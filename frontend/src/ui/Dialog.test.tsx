import { render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { listenForBack } from "~/lib/unsaved";
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

it("asks before Back of the browser closes it with unsaved input", async () => {
  listenForBack();
  const visited: string[] = [];
  const visit = () => visited.push(window.location.pathname);
  window.addEventListener("popstate", visit);
  window.history.replaceState(null, "", "/list");
  window.history.pushState(null, "", "/list/17");
  const answers = [false, true];
  const ask = vi.fn(() => answers.shift() ?? false);
  window.confirm = ask;
  const close = vi.fn();
  render(<Dialog open unsaved onClose={close} title="Edit" />);

  window.history.back();
  await vi.waitFor(() => expect(ask).toHaveBeenCalledTimes(1));
  expect(window.location.pathname).toBe("/list/17");
  expect([visited, close.mock.calls]).toEqual([[], []]);

  window.history.back();
  await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
  expect(visited).toEqual(["/list"]);
  window.removeEventListener("popstate", visit);
});
