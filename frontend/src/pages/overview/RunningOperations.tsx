import { Link } from "wouter";
import type { Schemas } from "~/api/client";
import { useRunningOperations } from "~/api/overview";
import { capital, number, plural, span } from "~/lib/format";
import { Empty, Loaded, Panel, State } from "~/ui";
import styles from "./RunningOperations.module.css";

type Operation = Schemas["OperationAnswer"];

/** Changes of many dead letters that have not ended. */
export function RunningOperations() {
  return (
    <Panel title="Running operations" flush aside={<Link href="/operations">All operations</Link>}>
      <Loaded query={useRunningOperations()}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No operation is running.">
              Requeueing many dead letters at once makes one; how far it is would be seen here.
            </Empty>
          ) : (
            <ul className={styles.operations}>
              {items.map((operation) => (
                <Running key={operation.id} operation={operation} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Running({ operation }: { operation: Operation }) {
  const { id, action, state, settled, total, progress, remaining_seconds: remaining, died_again } = operation;
  const name = `${capital(action)} of ${plural(total, "dead letter")}`;
  return (
    <li className={styles.operation}>
      <div className={styles.head}>
        <Link href={`/operations/${encodeURIComponent(id)}`}>{name}</Link>
        <State of={state} />
      </div>
      <progress value={progress} max={1} className={styles.progress} aria-label={`Progress: ${name}`} />
      <p className={styles.facts}>
        {number(settled)} of {number(total)} done
        {state === "running" && remaining !== null && `, about ${span(remaining)} left`}
        {died_again > 0 && <strong>, {number(died_again)} died again</strong>}
      </p>
    </li>
  );
}
