import { Link } from "wouter";
import type { Node, Topology } from "~/api/topology";
import { number } from "~/lib/format";
import { Badge, CopyButton, Facts, IconButton, Panel } from "~/ui";
import { aroundQueue } from "./around";
import styles from "./Topology.module.css";

const KINDS: Record<Node["kind"], string> = {
  exchange: "Exchange",
  queue: "Queue",
  retry: "Retry queue",
  "dead-letters": "Dead letter queue",
  worker: "Worker",
};

/** What is known of the node that was chosen, and where to go on from it. */
export function Chosen({ node, topology, onClose }: { node: Node; topology: Topology; onClose(): void }) {
  const wrong = topology.warnings.filter((warning) => warning.node === node.id);
  return (
    <div className={styles.chosen}>
      <Panel
        title={KINDS[node.kind]}
        aside={<IconButton icon="cross" label="Close what is chosen" onClick={onClose} />}
      >
        <div className={styles.stack}>
          <p className={styles.chosenName}>
            <strong>{node.name}</strong> <CopyButton text={node.name} label="Copy the name" />
          </p>
          {!node.exists && <Badge tone="bad">missing</Badge>}
          {wrong.map(({ summary }) => (
            <p key={summary}>
              <Badge tone="warn" icon="dead">
                warning
              </Badge>{" "}
              {summary}
            </p>
          ))}
          {node.kind === "queue" ? (
            <OfQueue node={node} topology={topology} />
          ) : (
            <Facts
              of={[
                ["Messages in it", node.queued === undefined ? undefined : number(node.queued)],
                ["Queues", neighbours(node, topology).join(", ")],
              ]}
            />
          )}
          {node.kind === "worker" && <Link href="/components?kind=worker">See the workers</Link>}
          {node.kind === "dead-letters" && (
            <Link
              href={`/dead-letters?${new URLSearchParams({ queue: neighbours(node, topology)[0] ?? "" })}`}
            >
              Its dead letters that were archived
            </Link>
          )}
        </div>
      </Panel>
    </div>
  );
}

function OfQueue({ node, topology }: { node: Node; topology: Topology }) {
  const { bindings, workers, retries, deadLetters } = aroundQueue(node, topology);
  const search = (name: string) => new URLSearchParams({ [name]: node.name });
  return (
    <>
      <Facts
        of={[
          ["Queued", node.queued === undefined ? "not known" : number(node.queued)],
          ["Retried later", node.retrying === undefined ? undefined : number(node.retrying)],
          ["Bound with", bindings.map(({ key }) => key).join(", ") || "nothing"],
          ["Consumed by", workers.join(", ") || "nobody"],
          ["Retries wait in", retries.map(({ name }) => name).join(", ")],
          ["Dead letters go to", deadLetters?.name],
        ]}
      />
      <Link href={`/messages?${search("target_queue")}`}>Messages of the outbox for it</Link>
      <Link href={`/dead-letters?${search("queue")}`}>Its dead letters</Link>
    </>
  );
}

function neighbours(node: Node, { nodes, edges }: Topology): readonly string[] {
  const ids = new Set(
    edges.flatMap(({ source, target }) =>
      source === node.id ? [target] : target === node.id ? [source] : [],
    ),
  );
  return nodes.filter(({ id }) => ids.has(id)).map(({ name }) => name);
}
