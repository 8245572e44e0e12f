// Neighbours of a node, for the list and for the details of the selected node.

import type { Edge, Node, Topology } from "~/api/topology";

export interface QueueNeighbours {
  /** Binding keys with their exchange. */
  bindings: readonly { exchange: string; key: string }[];
  workers: readonly string[];
  retries: readonly Node[];
  deadLetters: Node | undefined;
}

export function neighboursOf(
  queue: Node,
  { nodes, edges }: Pick<Topology, "nodes" | "edges">,
): QueueNeighbours {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const targetsOf = (kind: Edge["kind"]) =>
    edges.flatMap((edge) => {
      const target = edge.kind === kind && edge.source === queue.id ? byId.get(edge.target) : undefined;
      return target ? [target] : [];
    });
  return {
    bindings: edges
      .filter(({ kind, target }) => kind === "binding" && target === queue.id)
      .map(({ source, key }) => ({ exchange: byId.get(source)?.name ?? source, key: key ?? "" })),
    workers: targetsOf("consumer").map(({ name }) => name),
    retries: targetsOf("retry"),
    deadLetters: targetsOf("dead_letter")[0],
  };
}
