import type { Attempt, Delivery } from "~/api/chains";
import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { Icon, type IconName, Moment } from "~/ui";
import styles from "./Detail.module.css";
import { OUTCOMES } from "./descriptions";

const ICONS: Record<string, IconName> = {
  processed: "check",
  retried: "operations",
  dead_lettered: "dead",
  duplicate: "copy",
};

/** Each attempt that is known: when, how it ended, how long it took and where it ran. */
export function Attempts({ delivery }: { delivery: Delivery }) {
  if (delivery.attempts.length === 0) return null;
  return (
    <ol className={styles.attempts} aria-label={texts.attemptsIn(delivery.queue)}>
      {delivery.attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts are told in their order, and numbers may come twice
        <li key={index} data-outcome={attempt.outcome}>
          <Icon name={ICONS[attempt.outcome] ?? "info"} />
          <div>
            <One attempt={attempt} />
          </div>
        </li>
      ))}
    </ol>
  );
}

function One({ attempt }: { attempt: Attempt }) {
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
