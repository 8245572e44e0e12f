import type { ReactNode } from "react";
import type { Operation } from "~/api/operations";
import { useNow } from "~/lib/clock";
import { age, number, rate, secondsSince, span } from "~/lib/format";
import * as texts from "~/texts/operations";
import { Ago, Icon, type IconName, Moment, Panel } from "~/ui";
import { FailedAgain } from "./FailedAgain";
import styles from "./Progress.module.css";
import { ProgressBar, percent } from "./ProgressBar";
import { isOpen } from "./request";

/** Progress, rate and remaining time of an operation, and why it is not progressing. */
export function Progress({ of }: { of: Operation }) {
  const { item_count: total, settled_count: settled, active, state, results } = of;
  return (
    <Panel title={texts.progress}>
      <div className={styles.progress}>
        <ProgressBar of={of} />
        <dl className={styles.numbers}>
          <Figure name={results ? texts.sent : texts.doneFigure}>
            {texts.ofTotal(results ? results.sent : settled, total)}{" "}
            <span className={styles.quiet}>({percent(of)} %)</span>
          </Figure>
          <Figure name={active ? texts.rateSoFar : texts.rate}>{rate(of.items_per_second)}</Figure>
          {active ? (
            <Figure name={texts.timeLeft}>{state === "paused" ? "paused" : <TimeLeft of={of} />}</Figure>
          ) : (
            <Figure name={texts.duration}>{span(durationOf(of))}</Figure>
          )}
        </dl>
        {results && <Outcomes of={of} results={results} />}
        <Phase of={of} />
      </div>
    </Panel>
  );
}

/** Results of the messages that the operation has sent. */
function Outcomes({ of, results }: { of: Operation; results: NonNullable<Operation["results"]> }) {
  const { waiting, retrying, handled, unknown } = results;
  return (
    <dl className={styles.numbers} aria-label={texts.outcomes}>
      <Figure name={texts.waiting}>{number(waiting)}</Figure>
      <Figure name={texts.retrying}>{number(retrying)}</Figure>
      <Figure name={texts.handled}>{number(handled)}</Figure>
      <Figure name={texts.failedAgainFigure}>
        <FailedAgain of={of} />
      </Figure>
      {unknown > 0 && <Figure name={texts.unknown}>{number(unknown)}</Figure>}
    </dl>
  );
}

function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Estimated remaining time. */
function TimeLeft({ of: { remaining_seconds } }: { of: Operation }) {
  return remaining_seconds === null ? texts.noEstimate : texts.about(span(remaining_seconds));
}

/** One sentence on what the operation waits for, or how it ended. */
function Phase({ of }: { of: Operation }) {
  const now = useNow();
  const {
    state,
    options,
    canary_ends_at,
    item_count: total,
    settled_count: settled,
    stop_reason,
    results,
  } = of;
  const left = total - settled;
  const canarySecondsLeft = canary_ends_at ? -secondsSince(canary_ends_at, now) : 0;
  if (state === "stopped")
    return (
      <Sentence icon="stop" tone="bad">
        {texts.stopped(stop_reason, left)}
      </Sentence>
    );
  if (state === "cancelled")
    return (
      <Sentence icon="cross" tone="neutral">
        {texts.cancelled(settled, total, of.action)}
      </Sentence>
    );
  if (state === "paused")
    return (
      <Sentence icon="pause" tone="warn">
        {texts.paused(left)}
      </Sentence>
    );
  if (state === "running" && options.starts_at && secondsSince(options.starts_at, now) < 0)
    return (
      <Sentence icon="clock" tone="info">
        {texts.startsIn} <Ago at={options.starts_at} /> (<Moment at={options.starts_at} />)
      </Sentence>
    );
  if (state === "running" && options.canary && canarySecondsLeft > 0)
    return (
      <Sentence icon="eye" tone="info">
        {texts.canarySent(options.canary.count, left, age(canarySecondsLeft))}
      </Sentence>
    );
  if (state === "finished" && results && isOpen(of))
    return (
      <Sentence icon="clock" tone="info">
        {texts.allSent(results.waiting + results.retrying)}
      </Sentence>
    );
  return null;
}

function Sentence({ icon, tone, children }: { icon: IconName; tone: string; children: ReactNode }) {
  return (
    <p className={styles.sentence} data-tone={tone}>
      <Icon name={icon} />
      <span>{children}</span>
    </p>
  );
}

function durationOf({ created_at, finished_at }: Operation): number | null {
  return finished_at ? secondsSince(created_at, new Date(finished_at).getTime()) : null;
}
