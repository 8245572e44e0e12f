import { describe, expect, it } from "vitest";
import { foldLabel } from "./descriptions";
import { keyActionOf } from "./key-actions";
import { type Folding, ROOTS, type Row, rowsOf } from "./rows";
import { chain, delivery, message, wide } from "./samples";
import { treeOf } from "./tree";

const FOLDED: Folding = { open: new Set(), shut: new Set(), shown: undefined };

function names(rows: readonly Row[]): string[] {
  return rows.map((row) => (row.kind === "fold" ? foldLabel(row) : row.item.message.id));
}

describe("the tree", () => {
  it("handles cycles, missing parents, self-references and duplicate IDs", () => {
    const tree = treeOf(
      chain([
        message("root", null),
        message("a", "b"),
        message("b", "a"),
        message("lost", "missing"),
        message("self", "self"),
        message("root", "a"),
      ]),
    );
    expect(tree.items.map(({ message: { id } }) => id)).toEqual(["root", "lost", "self", "a", "b"]);
    expect(tree.roots.filter(({ orphan }) => orphan).map(({ message: { id } }) => id)).toEqual([
      "lost",
      "self",
      "a",
    ]);
    expect(tree.byId.get("b")?.parent).toBe(tree.byId.get("a"));
  });

  it("handles chains of any depth, and counts descendants", () => {
    const deep = Array.from({ length: 5_000 }, (_, depth) =>
      message(`${depth}`, depth > 0 ? `${depth - 1}` : null, depth === 4_999 ? { state: "dead" } : {}),
    );
    const tree = treeOf(chain(deep));
    expect(tree.byId.get("0")).toMatchObject({ descendantCount: 4_999, worst: 0 });
    expect(rowsOf(tree, FOLDED, true)).toHaveLength(5_000);
  });
});

describe("rows", () => {
  it("collapse many siblings into one row that describes them", () => {
    const rows = rowsOf(treeOf(chain(wide(2_000))), FOLDED, false);
    expect(rows).toHaveLength(1 + 40 + 1);
    expect(names(rows).at(-1)).toBe("and 1,960 more (all processed)");
  });

  it("keep messages visible that need attention, are critical, or are selected", () => {
    const dead = wide(2_000, (index) => (index === 1_500 ? { state: "dead" } : {}));
    const tree = treeOf(chain(dead, { critical_path: ["root", "c1700"] }));
    const shown = names(rowsOf(tree, { ...FOLDED, shown: "c1900" }, false));
    expect(shown).toEqual(expect.arrayContaining(["c1500", "c1700", "c1900"]));
    expect(shown).toHaveLength(1 + 40 + 1);
  });

  it("expand and collapse, and never collapse few siblings", () => {
    const tree = treeOf(chain(wide(2_000)));
    const open = names(rowsOf(tree, { ...FOLDED, open: new Set(["root"]) }, false));
    expect(open).toHaveLength(2_002);
    expect(open[1]).toBe("All 2,000 are shown. Collapse");
    expect(rowsOf(treeOf(chain(wide(50))), FOLDED, false)).toHaveLength(51);
    expect(rowsOf(tree, { ...FOLDED, shut: new Set(["root"]) }, false)).toHaveLength(1);
    expect(rowsOf(tree, { ...FOLDED, shut: new Set(["root"]), shown: "c7" }, false)).toHaveLength(42);
  });

  it("collapse messages without a known cause as well", () => {
    const lost = [
      message("root", null),
      ...wide(100)
        .slice(1)
        .map((each) => ({ ...each, parent_id: "?" })),
    ];
    const tree = treeOf(chain(lost));
    expect(rowsOf(tree, FOLDED, false)).toHaveLength(41);
    expect(rowsOf(tree, { ...FOLDED, open: new Set([ROOTS]) }, false)).toHaveLength(102);
  });

  it("number siblings for screen readers: queues first, then effects, then the fold", () => {
    const root = message("root", null, { deliveries: [delivery(), delivery({ queue: "audit" })] });
    const rows = rowsOf(treeOf(chain([root, ...wide(60).slice(1)])), FOLDED, true);
    expect(rows[1]).toMatchObject({ kind: "delivery", level: 2, position: 1, siblings: 43 });
    expect(rows[3]).toMatchObject({ kind: "message", level: 2, position: 3, siblings: 43 });
    expect(rows.at(-1)).toMatchObject({ kind: "fold", position: 43, hidden: 20 });
  });

  it("respond to the keys of a tree view", () => {
    const tree = treeOf(chain([...wide(2), message("grandchild", "c0")]));
    const rows = rowsOf(tree, { ...FOLDED, shut: new Set(["c0"]) }, false);
    expect(names(rows)).toEqual(["root", "c0", "c1"]);
    expect(keyActionOf("ArrowRight", rows, 0)).toBe(1);
    expect(keyActionOf("ArrowRight", rows, 1)).toBe("fold");
    expect(keyActionOf("ArrowLeft", rows, 0)).toBe("fold");
    expect(keyActionOf("ArrowLeft", rows, 2)).toBe(0);
    expect(keyActionOf("Enter", rows, 2)).toBe("act");
    expect(keyActionOf("a", rows, 2)).toBeUndefined();
  });
});
