import * as texts from "~/texts/chains";
import { Icon } from "~/ui";
import bars from "./Bars.module.css";
import styles from "./Legend.module.css";

const FILLS = [
  ["outbox", texts.legendOutbox],
  ["broker", texts.legendBroker],
  ["handling", "handling"],
  ["retry", texts.legendRetry],
  ["dead", texts.legendDead],
] as const;

/** Meaning of the fills and marks in the waterfall. */
export function Legend() {
  return (
    <ul className={styles.legend} aria-label={texts.legend}>
      {FILLS.map(([kind, words]) => (
        <li key={kind}>
          <span className={bars.sample} data-kind={kind} /> {words}
        </li>
      ))}
      <li>
        <span className={styles.tick} /> {texts.retryMark}
      </li>
      <li>
        <span className={styles.dead}>
          <Icon name="dead" />
        </span>{" "}
        {texts.deadMark}
      </li>
      <li title={texts.criticalPathHint}>
        <span className={styles.critical} /> <strong>{texts.criticalPathMark}</strong>
      </li>
    </ul>
  );
}
