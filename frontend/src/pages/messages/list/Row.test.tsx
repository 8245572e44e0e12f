import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { MessageLine } from "~/api/messages";
import { Row } from "./Row";

const LINE: MessageLine = {
  id: "17",
  message_id: "m",
  root_id: "m",
  state: "held",
  routing_key: "order.shipped",
  target_queue: null,
  destination: "default",
  ordering_key: null,
  dedup_key: null,
  priority: 0,
  attempt_count: 0,
  requeue_count: 0,
  last_error: { type: "", message: "unroutable", traceback: null },
  created_at: new Date(Date.now() - 3_600_000).toISOString(),
  due_at: null,
  held_at: new Date(Date.now() - 120_000).toISOString(),
  sent_at: null,
  failed_at: null,
  content_type: null,
  size: 0,
  preview: "",
};

it("shows how long a message has been held or, if unknown, when it was published", () => {
  const { rerender } = render(<Row line={LINE} search="" open={false} gone={false} />);
  expect(screen.getByRole("link").textContent).toMatch(/held 2 min.* ago$/);
  rerender(<Row line={{ ...LINE, held_at: null }} search="" open={false} gone={false} />);
  expect(screen.getByRole("link").textContent).toMatch(/published 1 h.* ago$/);
});
