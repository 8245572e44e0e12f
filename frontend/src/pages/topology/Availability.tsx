import type { Topology } from "~/api/topology";
import * as texts from "~/texts/topology";
import { Badge } from "~/ui";
import styles from "./Topology.module.css";

/** Which servers did not respond, and how that affects the page. */
export function Availability({ topology }: { topology: Topology }) {
  const { degraded, brokerError, bindingsKnown } = topology;
  const broker = degraded.includes("broker") || brokerError !== undefined;
  return (
    <>
      {broker && (
        <p className={styles.away} role="status">
          <Badge tone="warn" icon="lost">
            {texts.brokerDown}
          </Badge>{" "}
          {brokerError && <span>{brokerError}. </span>}
          {texts.brokerDownHint}
        </p>
      )}
      {degraded.includes("database") && (
        <p className={styles.away} role="status">
          <Badge tone="warn" icon="lost">
            {texts.databaseDown}
          </Badge>{" "}
          {texts.databaseDownHint}
        </p>
      )}
      {!bindingsKnown && !broker && <p className={styles.quiet}>{texts.bindingsHint}</p>}
    </>
  );
}
