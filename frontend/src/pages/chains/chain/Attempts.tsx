import type { Attempt, Delivery } from "~/api/chains";
import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { traceId } from "~/texts/external";
import { Icon, type IconName, Moment } from "~/ui";
import { TraceId } from "~/ui/External";
import styles from "./Detail.module.css";
import { OUTCOMES } from "./descriptions";

const ICONS: Record<string, IconName> = {
  processed: "check",
  retried: "operations",
  dead_lettered: "dead",
  duplicate: "copy",
};

/** The recorded attempts: outcome, time, duration, the component that ran it, and the trace. */
export function Attempts({ delivery }: { delivery: Delivery }) {
  if (delivery.attempts.length === 0) return null;
  return (
    <ol className={styles.attempts} aria-label={texts.attemptsIn(delivery.queue)}>
      {delivery.attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts have a fixed order, and their numbers can repeat
        <li key={index} data-outcome={attempt.outcome}>
          <Icon name={ICONS[attempt.outcome] ?? "info"} />
          <div>
            <AttemptDetails attempt={attempt} />
          </div>
        </li>
      ))}
    </ol>
  );
}

function AttemptDetails({ attempt }: { attempt: Attempt }) {
  const { attempt: number, outcome, ended_at: at, handling_seconds: seconds, component, error } = attempt;
  const ran = [seconds !== null && texts.ran(span(seconds)), component && texts.atComponent(component)]
    .filter(Boolean)
    .join(" ");
  return (
    <>
      <strong>{texts.attempt(number)}</strong> {OUTCOMES[outcome] ?? outcome}
      <p className={styles.quiet}>
        {at && <Moment at={at} milliseconds />}
        {at && ran && ", "}
        {ran}
      </p>
      {attempt.trace_id && (
        <p className={styles.quiet}>
          {traceId} <TraceId id={attempt.trace_id} url={attempt.external.trace_url} />
        </p>
      )}
      {error && (
        <p className={styles.failure}>
          <code>{error.type}</code>
          {error.type && error.message && ": "}
          {error.message}
        </p>
      )}
    </>
  );
}
