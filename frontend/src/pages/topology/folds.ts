// Merges similar boxes, so that a large topology stays readable.

import type { Edge, Node, Topology } from "~/api/topology";
import * as texts from "~/texts/topology";

type Graph = Pick<Topology, "nodes" | "edges">;

/** Minimum number of workers with the same queues that are drawn as one. */
const MIN_SIMILAR_WORKERS = 4;

/** From this number of queues, empty dead letter queues are omitted. */
const MANY_QUEUES = 12;

/** Merges retry queues, merges workers with the same queues, and omits empty dead letter queues if there are many queues. */
export function folded(topology: Graph): Graph {
  return foldWorkers(foldRetries(foldEmpty(topology)));
}

/** Whether folding makes a difference. */
export function canFold(topology: Graph): boolean {
  return folded(topology).nodes.length < topology.nodes.length;
}

function foldEmpty({ nodes, edges }: Graph): Graph {
  if (nodes.filter(({ kind }) => kind === "queue").length < MANY_QUEUES) return { nodes, edges };
  const kept = nodes.filter(({ kind, exists, queued }) => kind !== "dead_letters" || !exists || queued !== 0);
  const ids = new Set(kept.map(({ id }) => id));
  return {
    nodes: kept,
    edges: edges.filter(({ kind, target }) => kind !== "dead_letter" || ids.has(target)),
  };
}

function foldRetries(topology: Graph): Graph {
  const retries = topology.nodes.filter(({ kind }) => kind === "retry");
  return retries.length < 2 ? topology : merge(topology, retries, texts.foldedRetries(retries.length));
}

function foldWorkers(topology: Graph): Graph {
  const byQueues = new Map<string, Node[]>();
  for (const worker of topology.nodes.filter(({ kind }) => kind === "worker")) {
    const queues = topology.edges.filter(({ target }) => target === worker.id).map(({ source }) => source);
    const key = [...new Set(queues)].sort().join("\n");
    byQueues.set(key, [...(byQueues.get(key) ?? []), worker]);
  }
  return [...byQueues.values()]
    .filter((workers) => workers.length >= MIN_SIMILAR_WORKERS)
    .reduce((drawn, workers) => merge(drawn, workers, texts.foldedWorkers(workers.length)), topology);
}

function merge({ nodes, edges }: Graph, members: readonly Node[], name: string): Graph {
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
