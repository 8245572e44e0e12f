import { Moment } from "~/ui";
import type { Span } from "./lanes";
import styles from "./Ruler.module.css";
import { ticks } from "./ruler-marks";

/** The axis of time above the rows, with lines down through them. */
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
  const scale = width / (view.to - view.from);
  return (
    <div className={styles.ruler} aria-hidden="true">
      <span className={styles.origin} style={{ width: names }}>
        <span>since</span> <Moment at={new Date(origin).toISOString()} short />
      </span>
      {marks.map(({ at, label }) => {
        const left = (at - view.from) * scale;
        return (
          <span key={at} className={styles.tick} style={{ left: names + left, height }}>
            {left < width - 30 && <span className={styles.label}>{label}</span>}
          </span>
        );
      })}
    </div>
  );
}
