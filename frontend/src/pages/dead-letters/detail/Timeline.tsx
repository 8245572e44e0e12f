import { useMemo } from "react";
import type { DeadLetter } from "~/api/dead-letter";
import { span } from "~/lib/format";
import * as texts from "~/texts/dead-letters";
import { Icon, Moment } from "~/ui";
import styles from "./Timeline.module.css";
import { Traceback } from "./Traceback";
import { timelineOf } from "./timeline";

/** Every failure and requeue, oldest first. */
export function Timeline({ deadLetter }: { deadLetter: DeadLetter }) {
  const events = useMemo(() => timelineOf(deadLetter), [deadLetter]);
  return (
    <ol className={styles.timeline}>
      {events.map(({ key, at, after, what, more, tone, icon, failure }) => (
        <li key={key} data-tone={tone}>
          <span className={styles.icon}>
            <Icon name={icon} />
          </span>
          <div className={styles.words}>
            <p className={styles.line}>
              <strong>{what}</strong>
              <span className={styles.when}>
                {at === null ? texts.unknownTime : <Moment at={at} short />}
                {after !== undefined && after > 0 && texts.later(span(after))}
              </span>
            </p>
            {more && <p className={styles.more}>{more}</p>}
            {failure?.error.traceback && (
              <details>
                <summary>{texts.traceback}</summary>
                <Traceback text={failure.error.traceback} />
              </details>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}
