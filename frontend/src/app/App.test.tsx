import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ADA } from "~/testing/ada";

/** A service whose session a test ends and renews, and the bodies of the messages that it published. */
const served = vi.hoisted(() => {
  const state = { isLoggedIn: true, published: [] as string[] };
  globalThis.EventSource = class extends EventTarget {
    close() {}
  } as unknown as typeof EventSource;
  globalThis.fetch = async (input) => {
    const { url, method } = input as Request;
    if (!state.isLoggedIn) {
      const problem = { title: "Authentication required", detail: "Log in.", code: "unauthenticated" };
      return Response.json({ ...problem, status: 401 }, { status: 401 });
    }
    if (url.endsWith("/session")) return Response.json(ADA);
    if (method === "POST") state.published.push(await (input as Request).text());
    if (method === "POST") return Response.json({ message_id: "m-1" });
    return Response.json({ items: [], next: null, previous: null, routing_keys: [], destinations: [] });
  };
  return state;
});

const { App } = await import("./App");

it("keeps what was typed in a dialog when the session ends, and the login follows when it is closed", async () => {
  window.history.replaceState(null, "", "/messages");
  window.confirm = () => true;
  render(<App />);
  await userEvent.click(await screen.findByRole("button", { name: "Publish …" }, { timeout: 20_000 }));
  await userEvent.type(screen.getByLabelText("Routing key"), "a.b");
  served.isLoggedIn = false;
  await userEvent.click(screen.getByRole("button", { name: "Publish" }));
  const link = await screen.findByRole("link", { name: "Log in in another tab" });
  expect(link.getAttribute("href")).toContain("/messages");
  expect(screen.getByLabelText<HTMLInputElement>("Routing key").value).toBe("a.b");

  served.isLoggedIn = true; // in another tab, from which the user returns
  window.dispatchEvent(new Event("visibilitychange"));
  await userEvent.click(screen.getByRole("button", { name: "Publish" }));
  await waitFor(() => expect(served.published).toEqual([expect.stringContaining("a.b")]));
  await waitFor(() => expect(screen.queryByLabelText("Routing key")).toBeNull());

  await userEvent.click(screen.getByRole("button", { name: "Publish …" }));
  served.isLoggedIn = false;
  await userEvent.type(screen.getByLabelText("Routing key"), "c");
  await userEvent.click(screen.getByRole("button", { name: "Publish" }));
  await screen.findByRole("link", { name: "Log in in another tab" });
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(await screen.findByLabelText("Token")).toBeDefined();
});
