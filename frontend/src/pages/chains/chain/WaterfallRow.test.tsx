import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { type Row, rowsOf } from "./rows";
import { at, attempt, chain, delivery, message } from "./samples";
import { chainViewOf } from "./view";
import { WaterfallRow } from "./WaterfallRow";

const NO_FOLDING = { open: new Set<string>(), shut: new Set<string>(), shown: undefined };

/**
 * An order delivered to two queues: mail took 47 ms, payments 139 s. Payments published the last message of the chain, and
 * was recorded 40 ms after its end, so that it seems to have begun later.
 */
const CHAIN = chain(
  [
    message("order", null, {
      deliveries: [
        delivery({ queue: "mail", attempts: [attempt(1.047, "processed", 0.02)] }),
        delivery({ queue: "payments", attempts: [attempt(140, "processed", 2)] }),
      ],
    }),
    message("paid", "order", { published_at: at(137.96), sent_at: at(140) }),
    message("stock", "order", { published_at: at(1.04), sent_at: at(1.1) }),
  ],
  { critical_path: ["order", "paid"] },
);

function renderRows(of = CHAIN): Row[] {
  const chainView = chainViewOf(of, Date.parse(at(200)));
  const rows = rowsOf(chainView.tree, NO_FOLDING, true);
  const view = chainView.extent ?? { from: 0, to: 1 };
  const props = { prefix: "p", isCursor: false, isSelected: false, height: 34, names: 240, width: 500, view };
  render(
    rows.map((row, index) => {
      const lanes = row.kind === "fold" ? undefined : chainView.lanes.get(row.item);
      return <WaterfallRow key={row.key} row={row} index={index} lanes={lanes} {...props} />;
    }),
  );
  return rows;
}

function criticalMarks(): (string | undefined)[] {
  return screen.getAllByRole("treeitem").map((row) => row.dataset.critical);
}

describe("a row of the waterfall", () => {
  it("reads out the time of its own delivery, not that of the whole message", () => {
    renderRows();
    const [, mail, payments] = screen.getAllByRole("treeitem");
    expect(mail?.textContent).toContain("in mail, took 47 ms");
    expect(payments?.textContent).toContain("in payments, took 2 min 19 s");
  });

  it("is marked only if it is on the critical path", () => {
    const rows = renderRows();
    expect(
      rows.map((row) =>
        row.kind === "delivery" ? row.delivery.queue : row.kind === "message" && row.item.message.id,
      ),
    ).toEqual(["order", "mail", "payments", "paid", "stock"]);
    expect(criticalMarks()).toEqual(["true", undefined, "true", "true", undefined]);
  });

  it("is not marked if the handlers of two queues may have published the next message", () => {
    const both = ["mail", "payments"].map((queue) =>
      delivery({ queue, attempts: [attempt(2, "processed", 1)] }),
    );
    const order = message("order", null, { deliveries: both });
    renderRows(
      chain([order, message("paid", "order", { published_at: at(1.5) })], {
        critical_path: ["order", "paid"],
      }),
    );
    expect(criticalMarks()).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("is not marked if every row would be", () => {
    const line = [
      message("a", null, { deliveries: [delivery()] }),
      message("b", "a", { deliveries: [delivery()] }),
    ];
    renderRows(chain(line, { critical_path: ["a", "b"] }));
    expect(criticalMarks()).toEqual([undefined, undefined]);
  });
});
