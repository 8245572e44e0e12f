import styles from "./Sparkline.module.css";

const WIDTH = 96;
const HEIGHT = 24;
const GAP = 1;
/** Keeps one message among thousands visible. */
const MIN_HEIGHT = 2;

/** A small bar chart of equal steps; `label` is its accessible name. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  return (
    <svg
      className={styles.sparkline}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className={styles.ground} />
      {bars(values).map(({ x, width, height }) => (
        <rect key={x} x={x} y={HEIGHT - height} width={width} height={height} className={styles.bar} />
      ))}
    </svg>
  );
}

export interface Bar {
  x: number;
  width: number;
  height: number;
}

/** Bars of all values other than 0, each at the position of its step. */
export function bars(values: readonly number[]): Bar[] {
  const max = Math.max(1, ...values);
  const step = WIDTH / Math.max(1, values.length);
  return values.flatMap((value, index) =>
    value > 0
      ? [
          {
            x: index * step,
            width: Math.max(1, step - GAP),
            height: Math.max(MIN_HEIGHT, (value / max) * HEIGHT),
          },
        ]
      : [],
  );
}
