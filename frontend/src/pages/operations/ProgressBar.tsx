import { endedEarly, FAILURES_FIRST, type Operation } from "~/api/operations";
import * as texts from "~/texts/operations";
import styles from "./ProgressBar.module.css";

/** Progress bar of an operation, with a segment for each outcome. */
export function ProgressBar({ of, thin = false }: { of: Operation; thin?: boolean }) {
  const { id, item_count: total, settled_count: settled, counts, state } = of;
  const untouched = endedEarly(state) ? ["pending", "skipped"] : ["pending"];
  const parts = FAILURES_FIRST.filter((outcome) => !untouched.includes(outcome)).toReversed();
  return (
    <div
      className={styles.track}
      data-thin={thin || undefined}
      role="progressbar"
      aria-label={texts.progressOf(id)}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent(of)}
      aria-valuetext={texts.ofTotal(settled, total)}
    >
      {parts.map((outcome) => {
        const count = counts[outcome] ?? 0;
        return count > 0 ? (
          <span
            key={outcome}
            className={styles.part}
            data-outcome={outcome}
            style={{ width: `${(100 * count) / Math.max(total, 1)}%` }}
          />
        ) : null;
      })}
    </div>
  );
}

/** Returns the progress in whole percent; 100 only if complete. */
export function percent({ settled_count: settled, item_count: total }: Operation): number {
  return total === 0 ? 100 : Math.floor((100 * settled) / total);
}
