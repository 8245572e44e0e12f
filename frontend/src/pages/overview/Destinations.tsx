import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import { count, span } from "~/lib/format";
import * as texts from "~/texts/overview";
import { Badge, Panel } from "~/ui";
import styles from "./Rows.module.css";

type Destination = Backlog["destinations"][number];

/** What waits for each destination, and which relays serve it. Nothing if the outbox has only the default one. */
export function Destinations({ backlog: { destinations } }: { backlog: Backlog }) {
  if (destinations.length === 0) return null;
  return (
    <Panel title={texts.destinations} flush>
      <ul className={styles.rows}>
        {destinations.map((each) => (
          <One key={each.destination} of={each} />
        ))}
      </ul>
    </Panel>
  );
}

function One({
  of: { destination, unsent, oldest_pending_age_seconds: oldest, relay_count, sends_to },
}: {
  of: Destination;
}) {
  return (
    <li className={styles.row}>
      <div className={styles.words}>
        <Link href={`/messages?destination=${destination}`}>{destination}</Link>
        <span className={styles.facts}>
          {sends_to !== null && <span>{sends_to}</span>}
          {oldest !== null && <span>{texts.oldestFor(span(oldest))}</span>}
        </span>
      </div>
      <span className={styles.count}>
        <strong>{count(unsent)}</strong> {texts.unsent}
      </span>
      <Relays count={relay_count} />
    </li>
  );
}

function Relays({ count: running }: { count: number | null }) {
  if (running === null) return <Badge>{texts.relaysUnknown}</Badge>;
  if (running === 0) return <Badge tone="bad">{texts.noRelay}</Badge>;
  return <Badge tone="good">{texts.relaysRunning(running)}</Badge>;
}
