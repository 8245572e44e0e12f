import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import { type Component, lastSentAt } from "~/api/overview";
import { useStatistics } from "~/api/statistics";
import { useNow } from "~/lib/clock";
import { Icon } from "~/ui";
import { isIdle, lastSent, troubles } from "./health";
import styles from "./Verdict.module.css";

/** One look: what is wrong, or that nothing is. */
export function Verdict({
  backlog,
  components,
}: {
  backlog: Backlog;
  components: readonly Component[] | undefined;
}) {
  const found = troubles(backlog, components);
  if (found.length === 0) return <Well backlog={backlog} components={components} />;
  return (
    <ul className={styles.troubles} aria-label="What is wrong">
      {found.map(({ tone, text, href }) => (
        <li key={text} data-tone={tone}>
          <Icon name={tone === "bad" ? "dead" : "clock"} />
          <Link href={href}>{text}</Link>
        </li>
      ))}
    </ul>
  );
}

function Well({
  backlog,
  components = [],
}: {
  backlog: Backlog;
  components: readonly Component[] | undefined;
}) {
  const { data: lastHour } = useStatistics({ from: "-1h", to: "now" });
  const sent = lastSent(lastSentAt(components), lastHour, useNow());
  return (
    <p className={styles.well}>
      <Icon name="check" />
      <span>
        {isIdle(backlog) ? "Nothing pending." : "Messages are on their way, all in time."} {sent}
      </span>
    </p>
  );
}
