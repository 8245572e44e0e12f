import { Link } from "wouter";
import type { Node, Topology } from "~/api/topology";
import { number } from "~/lib/format";
import { Badge, Empty, Table } from "~/ui";
import { aroundQueue } from "./around";
import styles from "./Topology.module.css";

const HEAD = ["Queue", "Receives", "Queued", "Retries", "Dead letters", "Workers"];

/** The same as the drawing in words: each queue with what comes to it and where it goes on. */
export function QueueList({ of }: { of: Topology }) {
  const queues = of.nodes.filter(({ kind }) => kind === "queue");
  if (queues.length === 0)
    return <Empty title="There is no queue.">A worker that starts declares its own.</Empty>;
  return (
    <div className={styles.list}>
      <Table folds label="Queues" head={HEAD}>
        {queues.map((queue) => (
          <Row key={queue.id} queue={queue} of={of} />
        ))}
      </Table>
    </div>
  );
}

function Row({ queue, of }: { queue: Node; of: Topology }) {
  const { bindings, workers, retries, deadLetters } = aroundQueue(queue, of);
  const wrong = of.warnings.some(({ node }) => node === queue.id);
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <Link href={`/messages?${new URLSearchParams({ target_queue: queue.name })}`}>{queue.name}</Link>{" "}
        {!queue.exists && <Badge tone="bad">missing</Badge>}
        {wrong && queue.exists && (
          <Badge tone="warn" icon="dead">
            warning
          </Badge>
        )}
      </th>
      <td role="cell">
        <span className={styles.name}>Receives </span>
        {bindings.map(({ exchange, key }) => (
          <div key={`${exchange} ${key}`}>
            <code>{key}</code> <span className={styles.quiet}>from {exchange}</span>
          </div>
        ))}
        {bindings.length === 0 && "nothing"}
      </td>
      <td role="cell">
        <span className={styles.name}>Queued </span>
        {depth(queue.queued)}
      </td>
      <td role="cell">
        <span className={styles.name}>Retries </span>
        {retries.length > 0
          ? retries.map((retry) => <div key={retry.id}>{`${retry.name}: ${depth(retry.queued)}`}</div>)
          : queue.retrying === undefined
            ? "—"
            : `${number(queue.retrying)} later`}
      </td>
      <td role="cell">
        <span className={styles.name}>Dead letters </span>
        {deadLetters ? `${deadLetters.name}: ${depth(deadLetters.queued)} ` : ""}
        <Link href={`/dead-letters?${new URLSearchParams({ queue: queue.name })}`}>Show</Link>
      </td>
      <td role="cell">
        <span className={styles.name}>Workers </span>
        {workers.join(", ") || <Badge tone="warn">nobody</Badge>}
      </td>
    </tr>
  );
}

function depth(queued: number | undefined): string {
  return queued === undefined ? "not known" : number(queued);
}
