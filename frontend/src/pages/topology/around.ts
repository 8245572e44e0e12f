// What is around a node, in words: for the list, and for the node that was chosen.

import type { Edge, Node, Topology } from "~/api/topology";

export interface Around {
  /** Binding keys by the exchange that they lead from. */
  bindings: readonly { exchange: string; key: string }[];
  workers: readonly string[];
  retries: readonly Node[];
  deadLetters: Node | undefined;
}

export function aroundQueue(queue: Node, { nodes, edges }: Pick<Topology, "nodes" | "edges">): Around {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const leading = (kind: Edge["kind"]) =>
    edges.flatMap((edge) => {
      const target = edge.kind === kind && edge.source === queue.id ? byId.get(edge.target) : undefined;
      return target ? [target] : [];
    });
  return {
    bindings: edges
      .filter(({ kind, target }) => kind === "binding" && target === queue.id)
      .map(({ source, key }) => ({ exchange: byId.get(source)?.name ?? source, key: key ?? "" })),
    workers: leading("consumer").map(({ name }) => name),
    retries: leading("retry"),
    deadLetters: leading("dead-letter")[0],
  };
}

/** What running the commands of a warning would destroy, where one of them does. */
export function lossOf(code: string, broker: string): string | undefined {
  if (code !== "queue-without-consumer" && code !== "subscription-without-consumer") return undefined;
  return broker === "postgresql"
    ? "The second one, for psql in the schema of the outbox table, ends the subscription: what is published " +
        "from then on does not go to this queue. What waits in it already stays, and nobody handles it."
    : "The second one deletes the queue and its bindings, for good, and refuses to while messages are in it: " +
        "what is published from then on does not go there. Add -p for another virtual host than /.";
}

/** What would mend a warning, as commands to copy: those that look first. */
export function commandsFor(code: string, name: string, broker: string): readonly string[] {
  switch (code) {
    case "unroutable":
      return ["outbox messages --state held"];
    case "queue-without-consumer":
    case "subscription-without-consumer":
      return [
        "outbox components",
        broker === "postgresql"
          ? `DELETE FROM outbox_subscription WHERE queue = '${name.replaceAll("'", "''")}';`
          : `rabbitmqctl delete_queue --if-empty ${quoted(name)}`,
      ];
    case "old-binding":
      return ["rabbitmqctl list_bindings source_name routing_key destination_name"];
    case "dead-letters-vanish":
    case "queue-limit":
      return [
        "rabbitmqctl list_policies",
        `rabbitmqctl list_queues name arguments policy | grep -F ${quoted(name)}`,
      ];
    case "exchange-missing":
    case "queue-missing":
    case "retry-queue-missing":
    case "dead-letter-queue-missing":
      return ["outbox components", "outbox doctor"];
    default:
      return [];
  }
}

/** As one word of a shell. */
function quoted(word: string): string {
  return /^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
