import { describe, expect, it } from "vitest";
import type { Edge, Node } from "~/api/topology";
import { canFold, folded } from "./folds";
import { type Box, layout } from "./layout";

const node = (kind: Node["kind"], name: string, queued?: number): Node => ({
  id: `${kind === "exchange" || kind === "worker" ? kind : "queue"}:${name}`,
  kind,
  name,
  exists: true,
  queued,
  retrying: undefined,
  consumers: undefined,
});
const edge = (kind: Edge["kind"], source: string, target: string, key?: string): Edge => ({
  kind,
  source,
  target,
  key,
});

/** Queues with dead letter queues, four shared retry queues, and workers that consume all queues. */
function shop(queues: number, workers: number) {
  const names = Array.from({ length: queues }, (_, at) => `q${String(at).padStart(2, "0")}`);
  const delays = ["1s", "10s", "1m", "5m"].map((delay) => `outbox.delay_${delay}`);
  const workerNames = Array.from({ length: workers }, (_, at) => `w${at}`);
  return {
    nodes: [
      node("exchange", "outbox"),
      ...names.flatMap((name) => [node("queue", name, 3), node("dead_letters", `${name}.dlq`, 0)]),
      ...delays.map((name) => node("retry", name, 2)),
      ...workerNames.map((name) => node("worker", name)),
    ],
    edges: names.flatMap((name) => [
      edge("binding", "exchange:outbox", `queue:${name}`, "a"),
      edge("binding", "exchange:outbox", `queue:${name}`, "b"),
      edge("dead_letter", `queue:${name}`, `queue:${name}.dlq`),
      ...delays.map((delay) => edge("retry", `queue:${name}`, `queue:${delay}`)),
      ...workerNames.map((worker) => edge("consumer", `queue:${name}`, `worker:${worker}`)),
    ]),
  };
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

describe("the layout", () => {
  it.each([
    ["small", shop(3, 1)],
    ["large", shop(60, 12)],
    ["with exchanges only", { nodes: [node("exchange", "a"), node("exchange", "b")], edges: [] }],
    ["empty", { nodes: [], edges: [] }],
  ])("of a topology that is %s has no overlapping boxes, and all within its size", (_, topology) => {
    for (const unfolded of [false, true]) {
      const { boxes, width, height } = layout(topology, unfolded);
      for (const [at, box] of boxes.entries()) {
        expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height).toBe(
          true,
        );
        expect(boxes.slice(at + 1).filter((other) => overlap(box, other))).toEqual([]);
      }
    }
  });

  it("goes from exchanges to queues to workers, with dead letter queues below their queue", () => {
    const { boxes } = layout(shop(3, 1), false);
    const at = (id: string) => boxes.find((box) => box.id === id) as Box;
    expect(at("exchange:outbox").x).toBeLessThan(at("queue:q00").x);
    expect(at("queue:q00").x).toBeLessThan(at("worker:w0").x);
    expect(at("queue:q01.dlq").y).toBeGreaterThan(at("queue:q01").y);
    expect(at("queue:q01.dlq").y).toBeLessThan(at("queue:q02").y);
  });

  it("draws one line for several keys, and none to missing nodes", () => {
    const { paths } = layout(shop(1, 1), true);
    expect(paths.map(({ kind }) => kind).sort()).toEqual(
      ["binding", "consumer", "dead_letter", "retry", "retry", "retry", "retry"].sort(),
    );
    const lonely = layout(
      { nodes: [node("queue", "a")], edges: [edge("consumer", "queue:a", "worker:x")] },
      false,
    );
    expect(lonely.paths).toEqual([]);
  });

  it("does not depend on the order of nodes", () => {
    const topology = shop(5, 3);
    const reversed = { nodes: [...topology.nodes].reverse(), edges: topology.edges };
    expect(layout(reversed, true).boxes).toEqual(layout(topology, true).boxes);
  });
});

describe("folding", () => {
  it("merges retry queues with their total depth, and similar workers", () => {
    const { nodes, edges } = folded(shop(60, 12));
    expect(nodes.filter(({ kind }) => kind === "retry")).toMatchObject([
      { name: "4 retry queues", queued: 8 },
    ]);
    expect(nodes.filter(({ kind }) => kind === "worker")).toMatchObject([{ name: "12 similar workers" }]);
    expect(edges.filter(({ kind }) => kind === "retry" || kind === "consumer")).toHaveLength(120);
  });

  it("omits empty dead letter queues if there are many", () => {
    const deadLetterQueues = (topology: ReturnType<typeof shop>) =>
      folded(topology).nodes.filter(({ kind }) => kind === "dead_letters").length;
    expect([deadLetterQueues(shop(3, 1)), deadLetterQueues(shop(60, 1))]).toEqual([3, 0]);
  });

  it("keeps few workers separate, and reports whether it changes anything", () => {
    expect(folded(shop(2, 3)).nodes.filter(({ kind }) => kind === "worker")).toHaveLength(3);
    expect(canFold({ nodes: [node("queue", "a")], edges: [] })).toBe(false);
    expect(canFold(shop(2, 1))).toBe(true);
  });
});
