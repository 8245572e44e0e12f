import type { Topology } from "~/api/topology";
import { Badge } from "~/ui";
import styles from "./Topology.module.css";

/** What could not be asked, and what that means for what is shown. */
export function Away({ topology }: { topology: Topology }) {
  const { degraded, brokerError, bindingsKnown } = topology;
  const broker = degraded.includes("broker") || brokerError !== undefined;
  return (
    <>
      {broker && (
        <p className={styles.away} role="status">
          <Badge tone="warn" icon="lost">
            The broker does not answer
          </Badge>{" "}
          {brokerError && <span>{brokerError}. </span>}
          Shown is what workers have told of; how much lies in queues, and whether they are there, is not
          known.
        </p>
      )}
      {degraded.includes("database") && (
        <p className={styles.away} role="status">
          <Badge tone="warn" icon="lost">
            The database does not answer
          </Badge>{" "}
          Shown is what was known last.
        </p>
      )}
      {!bindingsKnown && !broker && (
        <p className={styles.quiet}>
          Bindings are those that workers have told of. With the address of RabbitMQ's management API,
          OUTBOX_MANAGEMENT_URL, all are shown.
        </p>
      )}
    </>
  );
}
