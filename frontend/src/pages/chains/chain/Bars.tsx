import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { Icon } from "~/ui";
import styles from "./Bars.module.css";
import { KINDS, OUTCOMES } from "./descriptions";
import { type Lane, reachOf, type Span } from "./lanes";

/** What of a lane is in sight, as bars and ticks on a scale of `width` pixels. Screen readers get the row's words instead. */
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
  /** What it was left as, where that is bad. */
  bad: string | undefined;
}) {
  const scale = width / (view.to - view.from);
  const x = (at: number) => Math.min(Math.max((at - view.from) * scale, -EDGE), width + EDGE);
  const taken = reachOf(lanes);
  return (
    <div className={styles.bars} aria-hidden="true">
      {critical && taken && (
        <span
          className={styles.frame}
          style={{ left: x(taken.from) - 3, width: x(taken.to) - x(taken.from) + 6 }}
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
      {taken && <Length {...taken} x={x} width={width} bad={bad} />}
    </div>
  );
}

/** Bars reach this far out of sight, in pixels. */
const EDGE = 40;
const ROOM = 64;

/** How long it took in all, behind the last bar, or before the first where there is no room; or which way it lies. */
function Length({
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
  const room = bad ? ROOM + 34 : ROOM;
  const behind = end + room <= width;
  if (!behind && start < room) return null;
  const place = behind ? { left: end + (bad ? 13 : 9) } : { right: width - start + 6 };
  return (
    <span className={styles.length} style={place}>
      {bad && <strong>{bad} </strong>}
      {span((to - from) / 1000)}
    </span>
  );
}
