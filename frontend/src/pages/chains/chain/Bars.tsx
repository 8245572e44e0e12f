import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { Icon } from "~/ui";
import styles from "./Bars.module.css";
import { KINDS, OUTCOMES } from "./descriptions";
import { boundsOfLanes, type Lane, type Span } from "./lanes";

/** The visible part of the lanes, as bars and ticks on a scale of `width` pixels. Screen readers get the row's text instead. */
export function Bars({
  lanes,
  view,
  width,
  critical,
  bad,
}: {
  lanes: readonly Lane[];
  view: Span;
  width: number;
  critical: boolean;
  /** Label of the final state, if it needs attention. */
  bad: string | undefined;
}) {
  const scale = width / (view.to - view.from);
  const x = (at: number) => Math.min(Math.max((at - view.from) * scale, -EDGE), width + EDGE);
  const bounds = boundsOfLanes(lanes);
  return (
    <div className={styles.bars} aria-hidden="true">
      {critical && bounds && (
        <span
          className={styles.frame}
          style={{ left: x(bounds.from) - 3, width: x(bounds.to) - x(bounds.from) + 6 }}
        />
      )}
      {lanes.flatMap(({ pieces }) =>
        pieces.map(({ kind, from, to, open }) => (
          <span
            key={`${kind} ${from}`}
            className={styles.bar}
            data-kind={kind}
            data-open={open || undefined}
            title={`${KINDS[kind]}: ${span((to - from) / 1000)}${open ? texts.soFar : ""}`}
            style={{ left: x(from), width: Math.max(x(to) - x(from), 2) }}
          />
        )),
      )}
      {lanes.flatMap(({ marks }) =>
        marks.map(({ at, outcome, attempt }) => (
          <span
            key={`${attempt} ${at}`}
            className={styles.mark}
            data-outcome={outcome}
            title={texts.attemptOutcome(attempt, OUTCOMES[outcome] ?? outcome)}
            style={{ left: x(at) }}
          >
            {outcome === "dead_lettered" && <Icon name="dead" />}
          </span>
        )),
      )}
      {bounds && <Duration {...bounds} x={x} width={width} bad={bad} />}
    </div>
  );
}

/** Bars extend at most this many pixels beyond the visible area. */
const EDGE = 40;
/** Width of the duration label, in pixels. */
const LABEL_WIDTH = 64;

/** The total duration, after the last bar or, without enough room, before the first. An arrow if the bars are out of view. */
function Duration({
  from,
  to,
  x,
  width,
  bad,
}: {
  from: number;
  to: number;
  x(at: number): number;
  width: number;
  bad: string | undefined;
}) {
  const [start, end] = [x(from), x(to)];
  if (end < 0)
    return (
      <span className={styles.length} style={{ left: 4 }} title={texts.earlierTime}>
        ‹
      </span>
    );
  if (start > width)
    return (
      <span className={styles.length} style={{ right: 4 }} title={texts.laterTime}>
        ›
      </span>
    );
  if (to <= from) return null;
  const room = bad ? LABEL_WIDTH + 34 : LABEL_WIDTH;
  const fitsAfter = end + room <= width;
  if (!fitsAfter && start < room) return null;
  const position = fitsAfter ? { left: end + (bad ? 13 : 9) } : { right: width - start + 6 };
  return (
    <span className={styles.length} style={position}>
      {bad && <strong>{bad} </strong>}
      {span((to - from) / 1000)}
    </span>
  );
}
