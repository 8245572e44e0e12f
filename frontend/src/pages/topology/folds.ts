// Many boxes that say the same become one, so that a large topology can still be read.

import type { Edge, Node, Topology } from "~/api/topology";
import * as texts from "~/texts/topology";

type Drawn = Pick<Topology, "nodes" | "edges">;

/** Workers with the same queues are drawn as one from this many on. */
const ALIKE = 4;

/** From so many queues on, dead letter queues that are empty are left out. */
const MANY = 12;

/** Retry queues as one box, workers that consume the same queues as one, and of many empty dead letter queues none. */
export function folded(topology: Drawn): Drawn {
  return foldWorkers(foldRetries(foldEmpty(topology)));
}

/** Whether folding makes a difference. */
export function folds(topology: Drawn): boolean {
  return folded(topology).nodes.length < topology.nodes.length;
}

function foldEmpty({ nodes, edges }: Drawn): Drawn {
  if (nodes.filter(({ kind }) => kind === "queue").length < MANY) return { nodes, edges };
  const kept = nodes.filter(({ kind, exists, queued }) => kind !== "dead_letters" || !exists || queued !== 0);
  const ids = new Set(kept.map(({ id }) => id));
  return {
    nodes: kept,
    edges: edges.filter(({ kind, target }) => kind !== "dead_letter" || ids.has(target)),
  };
}

function foldRetries(topology: Drawn): Drawn {
  const retries = topology.nodes.filter(({ kind }) => kind === "retry");
  return retries.length < 2 ? topology : together(topology, retries, texts.foldedRetries(retries.length));
}

function foldWorkers(topology: Drawn): Drawn {
  const alike = new Map<string, Node[]>();
  for (const worker of topology.nodes.filter(({ kind }) => kind === "worker")) {
    const queues = topology.edges.filter(({ target }) => target === worker.id).map(({ source }) => source);
    const key = [...new Set(queues)].sort().join("\n");
    alike.set(key, [...(alike.get(key) ?? []), worker]);
  }
  return [...alike.values()]
    .filter((workers) => workers.length >= ALIKE)
    .reduce((drawn, workers) => together(drawn, workers, texts.foldedWorkers(workers.length)), topology);
}

function together({ nodes, edges }: Drawn, members: readonly Node[], name: string): Drawn {
  const [first] = members;
  if (!first) return { nodes, edges };
  const ids = new Set(members.map(({ id }) => id));
  const id = `folded:${first.id}`;
  const one: Node = {
    ...first,
    id,
    name,
    exists: members.every(({ exists }) => exists),
    queued: sum(members.map(({ queued }) => queued)),
  };
  const renamed = (end: string) => (ids.has(end) ? id : end);
  const kept = new Map<string, Edge>();
  for (const edge of edges) {
    const moved = { ...edge, source: renamed(edge.source), target: renamed(edge.target) };
    kept.set(`${moved.source}\n${moved.target}\n${moved.kind}\n${moved.key}`, moved);
  }
  return { nodes: [...nodes.filter((node) => !ids.has(node.id)), one], edges: [...kept.values()] };
}

function sum(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0);
}
