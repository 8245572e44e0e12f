import type { ReactNode } from "react";
import type { Operation } from "~/api/operations";
import { useNow } from "~/lib/clock";
import { age, number, plural, rate, secondsSince, span } from "~/lib/format";
import { Icon, type IconName, Panel } from "~/ui";
import { DiedAgain } from "./DiedAgain";
import styles from "./HowFar.module.css";
import { Progress, percent } from "./Progress";
import { isOpen } from "./words";

/** Progress, speed, what is left, and why it stands still if it does. */
export function HowFar({ of }: { of: Operation }) {
  const { total, settled, going_on, state, results } = of;
  return (
    <Panel title="How far it is">
      <div className={styles.far}>
        <Progress of={of} />
        <dl className={styles.numbers}>
          <Figure name={results ? "Sent" : "Done"}>
            {number(results ? results.sent : settled)} of {number(total)}{" "}
            <span className={styles.quiet}>({percent(of)} %)</span>
          </Figure>
          <Figure name={going_on ? "Speed so far" : "Speed"}>{rate(of.letters_per_second)}</Figure>
          {going_on ? (
            <Figure name="Left">{state === "paused" ? "paused" : <Left of={of} />}</Figure>
          ) : (
            <Figure name="Took">{span(took(of))}</Figure>
          )}
        </dl>
        {results && <BecameOfThem of={of} results={results} />}
        <Phase of={of} />
      </div>
    </Panel>
  );
}

/** What became of the messages that it has sent. */
function BecameOfThem({ of, results }: { of: Operation; results: NonNullable<Operation["results"]> }) {
  const { waiting, retrying, handled, unknown } = results;
  return (
    <dl className={styles.numbers} aria-label="What became of what it sent">
      <Figure name="Waiting">{number(waiting)}</Figure>
      <Figure name="Retrying">{number(retrying)}</Figure>
      <Figure name="Handled">{number(handled)}</Figure>
      <Figure name="Failed again">
        <DiedAgain of={of} />
      </Figure>
      {unknown > 0 && <Figure name="Unknown">{number(unknown)}</Figure>}
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

/** How long the others will take. */
function Left({ of: { remaining_seconds } }: { of: Operation }) {
  return remaining_seconds === null ? "nobody can say yet" : `about ${span(remaining_seconds)}`;
}

/** In a sentence: what it waits for, or how it ended. */
function Phase({ of }: { of: Operation }) {
  const now = useNow();
  const { state, options, canary_until, total, settled, stopped_because, results } = of;
  const left = total - settled;
  const watched = canary_until ? -secondsSince(canary_until, now) : 0;
  if (state === "stopped")
    return (
      <Sentence icon="stop" tone="bad">
        It has stopped itself{stopped_because && `: ${stopped_because}`}. {left > 0 && untouched(left)}
      </Sentence>
    );
  if (state === "cancelled")
    return (
      <Sentence icon="cross" tone="neutral">
        Somebody cancelled it. What was done stays done. {left > 0 && untouched(left)}
      </Sentence>
    );
  if (state === "paused")
    return (
      <Sentence icon="pause" tone="warn">
        It is paused: {plural(left, "dead letter waits", "dead letters wait")} until somebody resumes it.
      </Sentence>
    );
  if (state === "running" && options.canary && watched > 0)
    return (
      <Sentence icon="eye" tone="info">
        The first {number(options.canary.count)} are out. The other {number(left)} follow when those were
        handled; it waits for that {age(watched)} at most, and stops if too many of them fail.
      </Sentence>
    );
  if (state === "finished" && results && isOpen(of))
    return (
      <Sentence icon="clock" tone="info">
        All are sent. {plural(results.waiting + results.retrying, "message has", "messages have")} no final
        result yet; the numbers above follow.
      </Sentence>
    );
  return null;
}

function untouched(count: number): string {
  return `${plural(count, "dead letter was", "dead letters were")} left as ${count === 1 ? "it was" : "they were"}.`;
}

function Sentence({ icon, tone, children }: { icon: IconName; tone: string; children: ReactNode }) {
  return (
    <p className={styles.sentence} data-tone={tone}>
      <Icon name={icon} />
      <span>{children}</span>
    </p>
  );
}

function took({ created_at, finished_at }: Operation): number | null {
  return finished_at ? secondsSince(created_at, new Date(finished_at).getTime()) : null;
}
