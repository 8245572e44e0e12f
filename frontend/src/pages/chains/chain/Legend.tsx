import { Icon } from "~/ui";
import bars from "./Bars.module.css";
import styles from "./Legend.module.css";

const FILLS = [
  ["outbox", "in the outbox"],
  ["broker", "in the broker"],
  ["handling", "handling"],
  ["retry", "until the next attempt"],
  ["dead", "dead until requeued"],
] as const;

/** What the fills and signs of the waterfall mean. */
export function Legend() {
  return (
    <ul className={styles.legend} aria-label="Legend">
      {FILLS.map(([kind, words]) => (
        <li key={kind}>
          <span className={bars.sample} data-kind={kind} /> {words}
        </li>
      ))}
      <li>
        <span className={styles.tick} /> retry
      </li>
      <li>
        <span className={styles.dead}>
          <Icon name="dead" />
        </span>{" "}
        dead
      </li>
      <li title="What happened last is at its end: it decided how long the chain took.">
        <span className={styles.critical} /> <strong>critical path</strong>
      </li>
    </ul>
  );
}
