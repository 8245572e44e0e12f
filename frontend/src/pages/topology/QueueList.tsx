import { Link } from "wouter";
import type { Node, Topology } from "~/api/topology";
import { number } from "~/lib/format";
import * as texts from "~/texts/topology";
import { Badge, Empty, Table } from "~/ui";
import { neighboursOf } from "./neighbours";
import styles from "./Topology.module.css";
import { SeverityBadge } from "./Warnings";

const HEAD = [texts.queue, texts.bindings, texts.depth, texts.retries, texts.deadLetters, texts.workers];

/** The topology as a table: each queue with its bindings, retries, dead letters and workers. */
export function QueueList({ of }: { of: Topology }) {
  const queues = of.nodes.filter(({ kind }) => kind === "queue");
  if (queues.length === 0) return <Empty title={texts.noQueues}>{texts.noQueuesHint}</Empty>;
  return (
    <div className={styles.list}>
      <Table folds label={texts.queues} head={HEAD}>
        {queues.map((queue) => (
          <Row key={queue.id} queue={queue} of={of} />
        ))}
      </Table>
    </div>
  );
}

function Row({ queue, of }: { queue: Node; of: Topology }) {
  const { bindings, workers, retries, deadLetters } = neighboursOf(queue, of);
  const worst = of.warnings.find(({ node }) => node === queue.id); // errors come first
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <Link href={`/messages?${new URLSearchParams({ target_queue: queue.name })}`}>{queue.name}</Link>{" "}
        {!queue.exists && <Badge tone="bad">{texts.missing}</Badge>}
        {worst && queue.exists && <SeverityBadge of={worst.severity} />}
      </th>
      <td role="cell">
        <span className={styles.name}>{texts.bindings} </span>
        {bindings.map(({ exchange, key }) => (
          <div key={`${exchange} ${key}`}>
            <code>{key}</code> <span className={styles.quiet}>{texts.from(exchange)}</span>
          </div>
        ))}
        {bindings.length === 0 && texts.none}
      </td>
      <td role="cell">
        <span className={styles.name}>{texts.depth} </span>
        {depth(queue.queued)}
      </td>
      <td role="cell">
        <span className={styles.name}>{texts.retries} </span>
        {retries.length > 0
          ? retries.map((retry) => <div key={retry.id}>{`${retry.name}: ${depth(retry.queued)}`}</div>)
          : queue.retrying === undefined
            ? "—"
            : texts.retryingCount(queue.retrying)}
      </td>
      <td role="cell">
        <span className={styles.name}>{texts.deadLetters} </span>
        {deadLetters ? `${deadLetters.name}: ${depth(deadLetters.queued)} ` : ""}
        <Link href={`/dead-letters?${new URLSearchParams({ queue: queue.name })}`}>{texts.show}</Link>
      </td>
      <td role="cell">
        <span className={styles.name}>{texts.workers} </span>
        {workers.join(", ") || <Badge tone="warn">{texts.none}</Badge>}
      </td>
    </tr>
  );
}

function depth(queued: number | undefined): string {
  return queued === undefined ? texts.noData : number(queued);
}
