import { useShortcuts } from "~/lib/keyboard";
import { usePreferences } from "~/lib/preferences";
import { Button } from "../Button";
import { type Range, SPANS, wider } from "./range";
import styles from "./TimeRange.module.css";
import { betweenName } from "./times";

/** Which time the charts of a page show. A range that a brush chose stands beside the usual ones. */
export function TimeRange({ range, onChoose }: { range: Range; onChoose(range: Range): void }) {
  const { zone } = usePreferences();
  const next = wider(range, Date.now() / 1000);
  const widen = () => next && onChoose(next);
  useShortcuts("Charts", [
    { keys: "-", label: "Show a wider range", run: widen },
    ...SPANS.map(({ span, label }, index) => ({
      keys: String(index + 1),
      label: `Show the last ${label}`,
      run: () => onChoose(span),
    })),
  ]);
  return (
    <div className={styles.range}>
      {typeof range !== "string" && (
        <span className={styles.custom}>{betweenName(range.from, range.to, zone)}</span>
      )}
      <Button look="quiet" whyNot={next ? undefined : "There is no wider range."} onClick={widen}>
        Wider
      </Button>
      <fieldset className={styles.spans} aria-label="Range of the charts">
        {SPANS.map(({ span, label }) => (
          <button
            key={span}
            type="button"
            className={styles.span}
            aria-pressed={range === span}
            onClick={() => onChoose(span)}
          >
            {label}
          </button>
        ))}
      </fieldset>
    </div>
  );
}
