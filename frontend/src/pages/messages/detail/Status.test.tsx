import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Message } from "~/api/messages";
import { Status } from "./Status";

const MESSAGE: Message = {
  id: "17",
  version: 1,
  state: "blocked",
  reason: "It waits for message 12, which is held, of its ordering key.",
  hint: null,
  blocked_by: { id: "12", message_id: null, state: "held" },
  ordering_key: "customer 7",
  next_attempt_at: null,
  probe_id: null,
  blocking_pauses: [],
  alive_relay_count: 1,
  deliveries: [],
  headers: [],
  message_id: "m",
  root_id: "m",
  tracking_ids: [],
  routing_key: "order.shipped",
  target_queue: null,
  destination: "default",
  dedup_key: null,
  priority: 0,
  attempt_count: 0,
  requeue_count: 0,
  last_error: { type: "", message: "blocked", traceback: null },
  created_at: "2026-11-20T17:00:00.000Z",
  due_at: null,
  held_at: null,
  sent_at: null,
  failed_at: null,
  expiration_seconds: null,
  content_type: null,
  size: 0,
  preview: "",
  body: null,
  body_base64: null,
  body_access: null,
  masked: true,
  trace_id: null,
  external: { log_url: null, trace_url: null },
};

function unroutable() {
  return screen.getByText("Unroutable").nextElementSibling?.textContent;
}

describe("the status of a message", () => {
  it("links a blocked message to the one before it, and to all with its ordering key", () => {
    render(<Status message={MESSAGE} />);
    const links = screen.getAllByRole("link").map((link) => [link.textContent, link.getAttribute("href")]);
    expect(links).toEqual([
      ["message 12", "/messages/12"],
      ["message 12", "/messages/12"],
      ["customer 7", "/messages?ordering_key=customer%207"],
      ["message 12", "/messages/12"],
    ]);
    expect(screen.queryByText("blocked")).toBeNull();
  });

  it("shows since when a held message has been unroutable", () => {
    const held = {
      ...MESSAGE,
      state: "held" as const,
      blocked_by: null,
      last_error: { type: "", message: "unroutable", traceback: null },
    };
    const { rerender } = render(<Status message={{ ...held, held_at: "2026-11-20T18:30:00.000Z" }} />);
    expect(unroutable()).toMatch(/^since 2026-11-20 18:30:00, .+ ago$/);
    rerender(<Status message={held} />);
    expect(unroutable()).toBe("time not recorded");
    rerender(<Status message={MESSAGE} />);
    expect(screen.queryByText("Unroutable")).toBeNull();
  });

  it("links a parked message to its dead letter", () => {
    render(
      <Status
        message={{
          ...MESSAGE,
          state: "parked",
          hint: "POST /requeue",
          blocked_by: null,
          last_error: { type: "", message: "no", traceback: null },
        }}
      />,
    );
    expect(screen.getByRole("link", { name: "dead letter outbox-17" }).getAttribute("href")).toBe(
      "/dead-letters/outbox-17",
    );
    expect(screen.queryByText("POST /requeue")).toBeNull();
    expect(screen.getByText("no")).toBeDefined();
  });

  it("shows which pause blocks it, and where to resume", () => {
    const pause = { scope: "relay" as const, name: "", reason: "deploy", expires_at: null };
    render(
      <Status
        message={{
          ...MESSAGE,
          state: "pending",
          hint: "POST /resume",
          blocked_by: null,
          blocking_pauses: [pause],
        }}
      />,
    );
    expect(screen.getByText("all relays").closest("li")?.textContent).toBe("all relays: deploy");
    expect(screen.getByRole("link", { name: "Components" })).toBeDefined();
  });
});
