// Layout of the diagram: exchanges on the left, queues with their retry and dead letter queues in the middle, workers on the right.

import type { Edge, Node, Topology } from "~/api/topology";
import { folded } from "./folds";

export interface Box extends Node {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface EdgePath {
  id: string;
  source: string;
  target: string;
  kind: Edge["kind"];
  path: string;
}

export interface Layout {
  width: number;
  height: number;
  boxes: readonly Box[];
  paths: readonly EdgePath[];
}

const EDGE = 1;
const GAP = 10;
const COLUMNS = { exchange: 190, queue: 320, worker: 210 };
const BETWEEN = 110;
const TALL = 46;
const FLAT = 30;
const INDENT = 28;
/** Pixels from the top that are visible on any screen without scrolling. */
const ABOVE_FOLD = 260;
const MIDDLE = EDGE + COLUMNS.exchange + BETWEEN;
const RIGHT = MIDDLE + COLUMNS.queue + BETWEEN;

/** Lays out a topology. Unless `unfolded`, similar boxes are merged. */
export function layout(topology: Pick<Topology, "nodes" | "edges">, unfolded: boolean): Layout {
  const { nodes, edges } = unfolded ? topology : folded(topology);
  const middle = queuesInOrder(nodes, edges);
  const placed = new Map(middle.map((box) => [box.id, box]));
  for (const box of [
    ...outerBoxes(nodes, "exchange", EDGE, edges, placed),
    ...outerBoxes(nodes, "worker", RIGHT, edges, placed),
  ]) {
    placed.set(box.id, box);
  }
  const boxes = [...placed.values()];
  return {
    width: RIGHT + COLUMNS.worker + EDGE,
    height: Math.max(TALL, ...boxes.map(({ y, height }) => y + height)) + EDGE,
    boxes,
    paths: pathsBetween(edges, placed),
  };
}

/** Places queues by name, each with its dead letter queue below it. Retry queues, which are shared, come last. */
function queuesInOrder(nodes: readonly Node[], edges: readonly Edge[]): readonly Box[] {
  const deadLetterQueueOf = new Map(
    edges.flatMap(({ kind, source, target }) => (kind === "dead_letter" ? [[source, target]] : [])),
  );
  const byName = (kind: Node["kind"]) =>
    nodes.filter((node) => node.kind === kind).sort((a, b) => a.name.localeCompare(b.name));
  const deadLetterQueues = new Map(byName("dead_letters").map((node) => [node.id, node]));
  const boxes: Box[] = [];
  let y = EDGE;
  function put(node: Node, indent: number, height: number): void {
    boxes.push({ ...node, x: MIDDLE + indent, y, width: COLUMNS.queue - indent, height });
    y += height + GAP;
  }
  for (const queue of byName("queue")) {
    put(queue, 0, TALL);
    const dead = deadLetterQueues.get(deadLetterQueueOf.get(queue.id) ?? "");
    if (!dead) continue;
    y -= GAP / 2;
    put(dead, INDENT, FLAT);
    deadLetterQueues.delete(dead.id);
  }
  for (const dead of deadLetterQueues.values()) put(dead, INDENT, FLAT);
  for (const retry of byName("retry")) put(retry, INDENT, FLAT);
  return boxes;
}

/** Places boxes next to the queues, each as close to the middle of its queues as possible. A single box stays above the fold. */
function outerBoxes(
  nodes: readonly Node[],
  kind: "exchange" | "worker",
  x: number,
  edges: readonly Edge[],
  queues: ReadonlyMap<string, Box>,
): readonly Box[] {
  const width = COLUMNS[kind];
  const wanted = nodes
    .filter((node) => node.kind === kind)
    .map((node) => ({ node, at: middleOf(node.id, edges, queues) }))
    .sort((a, b) => a.at - b.at || a.node.name.localeCompare(b.node.name));
  let free = EDGE;
  return wanted.map(({ node, at }, index) => {
    const rest = (wanted.length - index) * (TALL + GAP) - GAP;
    const most = wanted.length === 1 ? ABOVE_FOLD : lowest(queues) - rest;
    const y = Math.max(free, Math.min(at - TALL / 2, most));
    free = y + TALL + GAP;
    return { ...node, x, y, width, height: TALL };
  });
}

function middleOf(id: string, edges: readonly Edge[], queues: ReadonlyMap<string, Box>): number {
  const middles = edges.flatMap(({ source, target }) => {
    const box = source === id ? queues.get(target) : target === id ? queues.get(source) : undefined;
    return box ? [box.y + box.height / 2] : [];
  });
  return middles.length === 0 ? 0 : middles.reduce((sum, one) => sum + one, 0) / middles.length;
}

function lowest(boxes: ReadonlyMap<string, Box>): number {
  return Math.max(0, ...[...boxes.values()].map(({ y, height }) => y + height));
}

/** Returns one line between two boxes, however many keys bind them. */
function pathsBetween(edges: readonly Edge[], boxes: ReadonlyMap<string, Box>): readonly EdgePath[] {
  const paths = new Map<string, EdgePath>();
  for (const { source, target, kind } of edges) {
    const [from, to] = [boxes.get(source), boxes.get(target)];
    const id = `${source} ${target} ${kind}`;
    if (from && to && !paths.has(id))
      paths.set(id, { id, source, target, kind, path: pathOf(kind, from, to) });
  }
  return [...paths.values()];
}

function pathOf(kind: Edge["kind"], from: Box, to: Box): string {
  const end = to.y + to.height / 2;
  if (kind === "retry" || kind === "dead_letter") {
    const trunk = from.x + (kind === "retry" ? 8 : 17);
    return `M${trunk} ${from.y + from.height}V${end}H${to.x}`;
  }
  const [x, y] = [from.x + from.width, from.y + from.height / 2];
  const bend = (to.x - x) / 2;
  return `M${x} ${y}C${x + bend} ${y} ${to.x - bend} ${end} ${to.x} ${end}`;
}
