import { describe, expect, it } from "vitest";
import { boxesOf, visibleBoxes } from "./boxes";
import { lanesOf } from "./lanes";
import { linesOf, sorted } from "./lines";
import { type Folding, rowsOf } from "./rows";
import { at, attempt, chain, delivery, message, second, wide } from "./samples";
import { treeOf } from "./tree";
import { chainViewOf } from "./view";

const FOLDED: Folding = { open: new Set(), shut: new Set(), shown: undefined };

describe("lanes", () => {
  const now = Date.parse(at(100));
  const drawn = ({ outbox, deliveries: [first] }: ReturnType<typeof lanesOf>) =>
    [...outbox.pieces, ...(first?.pieces ?? [])].map(
      ({ kind, from, to, open }) => `${kind} ${second(from)}-${second(to)}${open ? "…" : ""}`,
    );

  it("show the outbox, the broker, each attempt, and the waits between them", () => {
    const attempts = [
      attempt(4, "retried"),
      attempt(9, "dead_lettered", 2, 2),
      attempt(30, "processed", 1, 3),
    ];
    const lanes = lanesOf(message("a", null, { deliveries: [delivery({ attempts })] }), now);
    expect(drawn(lanes)).toEqual([
      "outbox 0-1",
      "broker 1-3",
      "handling 3-4",
      "retry 4-7",
      "handling 7-9",
      "dead 9-29",
      "handling 29-30",
    ]);
    expect(lanes.deliveries[0]?.marks.map(({ outcome }) => outcome)).toEqual(["retried", "dead_lettered"]);
  });

  it("extend to now while the state has not ended", () => {
    const held = message("a", null, { state: "held", sent_at: null, waited_seconds: null });
    expect(drawn(lanesOf(held, now))).toEqual(["outbox 0-100…"]);
    const retrying = delivery({ state: "retrying", attempts: [attempt(4, "retried")] });
    expect(drawn(lanesOf(message("a", null, { deliveries: [retrying] }), now)).at(-1)).toBe("retry 4-100…");
    const queued = delivery({ state: "queued", attempt_count: 0 });
    expect(drawn(lanesOf(message("a", null, { deliveries: [queued] }), now)).at(-1)).toBe("broker 1-100…");
  });

  it("never run backwards when clocks differ, and stay empty without times", () => {
    const early = message("a", null, { published_at: at(5), sent_at: at(3), waited_seconds: null });
    expect(
      drawn(lanesOf({ ...early, deliveries: [delivery({ attempts: [attempt(2, "processed")] })] }, now)),
    ).toEqual(["handling 1-2"]);
    const unknown = message("a", null, { published_at: null, sent_at: null, waited_seconds: null });
    expect(chainViewOf(chain([unknown]), now).extent).toBeUndefined();
  });
});

describe("boxes", () => {
  it("place the first child next to its parent and the next one below, and render only the visible ones", () => {
    const rows = rowsOf(treeOf(chain([...wide(2), message("grandchild", "c0")])), FOLDED, false);
    const boxes = boxesOf(rows);
    const [root, first, grandchild, next] = boxes.list;
    expect(new Set([root?.y, first?.y, grandchild?.y]).size).toBe(1);
    expect(next?.y).toBeGreaterThan(first?.y ?? 0);
    expect(next?.x).toBe(first?.x);
    const all = boxesOf(rowsOf(treeOf(chain(wide(2_000))), { ...FOLDED, open: new Set(["root"]) }, false));
    expect(visibleBoxes(all, { top: 50_000, left: 0, width: 1_000, height: 700 }).length).toBeLessThan(20);
  });
});

describe("lines of the table", () => {
  it("sort by a column, with missing values last in both directions", () => {
    const tree = treeOf(
      chain([
        message("a", null, { waited_seconds: 2 }),
        message("b", "a", { waited_seconds: null }),
        message("c", "a", {
          waited_seconds: 5,
          deliveries: [delivery(), delivery({ queue: "audit", state: "dead" })],
        }),
      ]),
    );
    const lines = linesOf(tree.items);
    const ids = (sortedLines: typeof lines) => sortedLines.map(({ item }) => item.message.id).join("");
    expect(ids([...sorted(lines, "outbox", true)])).toBe("ccab");
    expect(ids([...sorted(lines, "outbox", false)])).toBe("accb");
    expect(sorted(lines, "state", false)[0]?.state).toBe("dead");
  });
});
