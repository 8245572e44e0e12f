import { useShortcuts } from "~/lib/keyboard";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { Button } from "../Button";
import { type Range, SPANS, wider } from "./range";
import styles from "./TimeRange.module.css";
import { betweenName } from "./times";

/** The time range of a page's charts. A range chosen with the brush is listed next to the usual ones. */
export function TimeRange({ range, onChoose }: { range: Range; onChoose(range: Range): void }) {
  const { zone } = usePreferences();
  const next = wider(range, Date.now() / 1000);
  const widen = () => next && onChoose(next);
  useShortcuts(texts.charts, [
    { keys: "-", label: texts.zoomOut, run: widen },
    ...SPANS.map(({ span, label }, index) => ({
      keys: String(index + 1),
      label: texts.showLast(label),
      run: () => onChoose(span),
    })),
  ]);
  return (
    <div className={styles.range}>
      {typeof range !== "string" && (
        <span className={styles.custom}>{betweenName(range.from, range.to, zone)}</span>
      )}
      <Button look="quiet" whyNot={next ? undefined : texts.widest} onClick={widen}>
        {texts.zoomOut}
      </Button>
      <fieldset className={styles.spans} aria-label={texts.timeRange}>
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
