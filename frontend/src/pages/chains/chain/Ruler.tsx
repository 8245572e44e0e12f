import * as texts from "~/texts/chains";
import { Moment } from "~/ui";
import type { Span } from "./lanes";
import styles from "./Ruler.module.css";
import { type Tick, ticks } from "./ruler-marks";

/** The time axis above the rows, and its grid lines behind them. */
export function Ruler({
  view,
  origin,
  names,
  width,
  height,
}: {
  view: Span;
  origin: number;
  names: number;
  width: number;
  height: number;
}) {
  const marks = ticks(view, origin, width);
  const x = ({ at }: Tick) => ((at - view.from) * width) / (view.to - view.from);
  return (
    <>
      <div className={styles.ruler} aria-hidden="true">
        <span className={styles.origin} style={{ width: names }}>
          {texts.since} <Moment at={new Date(origin).toISOString()} short />
        </span>
        {marks.map((mark) => (
          <span key={mark.at} className={styles.tick} style={{ left: names + x(mark) }}>
            {x(mark) < width - 30 && mark.label}
          </span>
        ))}
      </div>
      <div className={styles.lines} aria-hidden="true">
        {marks.map((mark) => (
          <span key={mark.at} className={styles.line} style={{ left: names + x(mark), height }} />
        ))}
      </div>
    </>
  );
}
