import { Link } from "wouter";
import type { Schemas } from "~/api/client";
import { useRunningOperations } from "~/api/overview";
import { capitalize } from "~/lib/format";
import * as texts from "~/texts/overview";
import { Empty, Loaded, Panel, State } from "~/ui";
import styles from "./RunningOperations.module.css";

type Operation = Schemas["OperationResponse"];

/** Operations that have not ended. */
export function RunningOperations() {
  return (
    <Panel
      title={texts.runningOperations}
      flush
      aside={<Link href="/operations">{texts.allOperations}</Link>}
    >
      <Loaded query={useRunningOperations()}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={texts.noOperations}>{texts.noOperationsHint}</Empty>
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
  const {
    id,
    action,
    state,
    settled_count: settled,
    item_count: total,
    progress,
    remaining_seconds: remaining,
    failed_again_count,
  } = operation;
  const name = texts.operationOn(capitalize(action), total);
  return (
    <li className={styles.operation}>
      <div className={styles.head}>
        <Link href={`/operations/${encodeURIComponent(id)}`}>{name}</Link>
        <State of={state} />
      </div>
      <progress value={progress} max={1} className={styles.progress} aria-label={texts.progressOf(name)} />
      <p className={styles.facts}>
        {texts.progress(settled, total, state === "running" ? remaining : null)}
        {failed_again_count > 0 && <strong>{texts.failedAgain(failed_again_count)}</strong>}
      </p>
    </li>
  );
}
