import { useShortcuts } from "~/lib/keyboard";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { Button } from "../Button";
import { type Range, SPANS, widerRange } from "./range";
import styles from "./TimeRange.module.css";
import { rangeName } from "./times";

/** Selects the time range of a page's charts. A range chosen with the brush is shown next to the presets. */
export function TimeRange({ range, onChoose }: { range: Range; onChoose(range: Range): void }) {
  const { zone } = usePreferences();
  const next = widerRange(range, Date.now() / 1000);
  const zoomOut = () => next && onChoose(next);
  useShortcuts(texts.charts, [
    { keys: "-", label: texts.zoomOut, run: zoomOut },
    ...SPANS.map(({ span, label }, index) => ({
      keys: String(index + 1),
      label: texts.showLast(label),
      run: () => onChoose(span),
    })),
  ]);
  return (
    <div className={styles.range}>
      {typeof range !== "string" && (
        <span className={styles.custom}>{rangeName(range.from, range.to, zone)}</span>
      )}
      <Button look="quiet" whyNot={next ? undefined : texts.widest} onClick={zoomOut}>
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
