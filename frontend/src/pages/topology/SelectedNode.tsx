import { Link } from "wouter";
import type { Node, Topology } from "~/api/topology";
import { number } from "~/lib/format";
import { queueAddress } from "~/lib/url-state";
import * as texts from "~/texts/topology";
import { Badge, CopyButton, Facts, IconButton, Panel } from "~/ui";
import { neighboursOf } from "./neighbours";
import styles from "./Topology.module.css";
import { SeverityBadge } from "./Warnings";

const KINDS: Record<Node["kind"], string> = {
  exchange: texts.exchange,
  queue: texts.queue,
  retry: texts.retryQueue,
  dead_letters: texts.deadLetterQueue,
  worker: texts.worker,
};

/** Details of the selected node, and links to pages about it. */
export function SelectedNode({
  node,
  topology,
  onClose,
}: {
  node: Node;
  topology: Topology;
  onClose(): void;
}) {
  const wrong = topology.warnings.filter((warning) => warning.node === node.id);
  return (
    <div className={styles.chosen}>
      <Panel
        title={KINDS[node.kind]}
        aside={<IconButton icon="cross" label={texts.close} onClick={onClose} />}
      >
        <div className={styles.stack}>
          <p className={styles.chosenName}>
            <strong>{node.name}</strong> <CopyButton text={node.name} label={texts.copyName} />
          </p>
          {!node.exists && <Badge tone="bad">{texts.missing}</Badge>}
          {wrong.map(({ summary, severity }) => (
            <p key={summary}>
              <SeverityBadge of={severity} /> {summary}
            </p>
          ))}
          {node.kind === "queue" ? (
            <QueueFacts node={node} topology={topology} />
          ) : (
            <Facts
              of={[
                [texts.messages, node.queued === undefined ? undefined : number(node.queued)],
                [texts.queues, neighbours(node, topology).join(", ")],
              ]}
            />
          )}
          {node.kind === "worker" && <Link href="/components?kind=worker">{texts.showWorkers}</Link>}
          {node.kind === "dead_letters" && (
            <Link
              href={`/dead-letters?${new URLSearchParams({ queue: neighbours(node, topology)[0] ?? "" })}`}
            >
              {texts.archivedDeadLetters}
            </Link>
          )}
        </div>
      </Panel>
    </div>
  );
}

function QueueFacts({ node, topology }: { node: Node; topology: Topology }) {
  const { bindings, workers, retries, deadLetters } = neighboursOf(node, topology);
  const search = (name: string) => new URLSearchParams({ [name]: node.name });
  return (
    <>
      <Facts
        of={[
          [texts.depth, node.queued === undefined ? texts.noData : number(node.queued)],
          [texts.retriedLater, node.retrying === undefined ? undefined : number(node.retrying)],
          [texts.bindingKeys, bindings.map(({ key }) => key).join(", ") || texts.none],
          [texts.consumers, workers.join(", ") || texts.none],
          [texts.retryQueues, retries.map(({ name }) => name).join(", ")],
          [texts.deadLettersTo, deadLetters?.name],
        ]}
      />
      <Link href={queueAddress(node.name)}>{texts.queuePage}</Link>
      <Link href={`/messages?${search("target_queue")}`}>{texts.messagesInOutbox}</Link>
      <Link href={`/dead-letters?${search("queue")}`}>{texts.deadLetters}</Link>
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
