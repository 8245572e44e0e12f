import { render, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Topology, Warning } from "~/api/topology";
import { Diagram } from "./Diagram";
import { QueueList } from "./QueueList";
import { SelectedNode } from "./SelectedNode";
import { Warnings } from "./Warnings";

const queue = { id: "queue:mail", kind: "queue", name: "mail", exists: true } as Topology["nodes"][number];

function warning(severity: Warning["severity"], summary: string): Warning {
  return { code: "unroutable", severity, node: queue.id, summary, hint: "bind it" };
}

function topology(...warnings: Warning[]): Topology {
  return { broker: "rabbitmq", degraded: [], nodes: [queue], edges: [], warnings } as unknown as Topology;
}

it("counts errors and warnings in the heading as their badges name them", () => {
  const { rerender } = render(<Warnings of={topology(warning("error", "one"))} />);
  const error = within(screen.getByRole("region", { name: "1 error" }));
  expect(error.getAllByText(/^(error|warning)$/).map((badge) => badge.textContent)).toEqual(["error"]);
  rerender(<Warnings of={topology(warning("warning", "one"), warning("warning", "two"))} />);
  expect(screen.getByRole("heading").textContent).toBe("2 warnings");
  rerender(<Warnings of={topology(warning("error", "one"), warning("warning", "two"))} />);
  expect(screen.getByRole("heading").textContent).toBe("1 error, 1 warning");
});

it("shows a queue with an error as one in the list, the details and the diagram", () => {
  const of = topology(warning("error", "one"), warning("warning", "two"));
  const list = render(<QueueList of={of} />);
  expect(list.getByText("error")).toBeTruthy();
  list.unmount();
  const details = render(<SelectedNode node={queue} topology={of} onClose={() => {}} />);
  expect(details.getByText("error")).toBeTruthy();
  details.unmount();
  const { container } = render(
    <Diagram topology={of} unfolded={false} chosen={undefined} onChoose={() => {}} />,
  );
  expect(container.querySelector("[data-wrong]")?.getAttribute("data-wrong")).toBe("error");
});
