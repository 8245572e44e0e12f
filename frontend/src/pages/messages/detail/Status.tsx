import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import { isInformative, type Message } from "~/api/messages";
import { useNow } from "~/lib/clock";
import { capitalize, secondsSince } from "~/lib/format";
import * as texts from "~/texts/messages";
import { Ago, Facts, Icon, Moment, stateStyle, type Tone } from "~/ui";
import styles from "./Detail.module.css";

/** Why the message is in its state, what happens next, and what the operator can do. */
export function Status({ message }: { message: Message }) {
  const hint = hintOf(message);
  const waits = message.state !== "sent" && message.state !== "parked";
  return (
    <section className={styles.part} aria-labelledby="why">
      <h3 id="why">{texts.status}</h3>
      <div className={styles.why} data-tone={toneOf(message)}>
        <p className={styles.reason}>
          <Sentence text={message.reason} />
        </p>
        <Facts
          of={[
            [texts.nextAttempt, message.next_attempt_at && <DueTime at={message.next_attempt_at} />],
            [texts.unroutable, message.state === "held" && <Since at={message.held_at} />],
            [texts.stalled, message.state === "stalled" && <Since at={message.held_at} />],
            [texts.blockedBy, message.blocked_by && <Blocker message={message} />],
            [
              texts.probe,
              message.probe_id && message.probe_id !== message.id && <Probe id={message.probe_id} />,
            ],
            [texts.paused, message.blocking_pauses.length > 0 && <Pauses of={message.blocking_pauses} />],
            [texts.relays, waits && message.alive_relay_count === 0 && texts.noRelay],
            [texts.failedAttempts, message.attempt_count > 0 && texts.times(message.attempt_count)],
          ]}
        />
        {isInformative(message.last_error) && <p className={styles.error}>{message.last_error.message}</p>}
        {hint && (
          <p className={styles.hint}>
            <Icon name="right" />
            <span>{hint}</span>
          </p>
        )}
      </div>
    </section>
  );
}

/** Returns the tone of the state. A healthy state becomes a warning while no relay is sending. */
function toneOf({ state, alive_relay_count, blocking_pauses }: Message): Tone {
  const { tone } = stateStyle(state);
  const isBlocked =
    state !== "sent" && (alive_relay_count === 0 || blocking_pauses.some(({ name }) => name === ""));
  return isBlocked && tone !== "bad" ? "warn" : tone;
}

/** Returns a hint on how to resolve the state. Uses the dashboard's own text and links if the dashboard can do it. */
function hintOf({ id, state, hint, blocking_pauses, alive_relay_count, blocked_by }: Message): ReactNode {
  if (state === "parked") {
    return (
      <>
        {texts.requeueAs} <Link href={`/dead-letters/outbox-${id}`}>{texts.deadLetterOf(id)}</Link>.
      </>
    );
  }
  if (hint === null) {
    if (!blocked_by) return null;
    return (
      <>
        {texts.sentAfter}{" "}
        <Link href={`/messages/${blocked_by.id}`}>{texts.messageNumber(blocked_by.id)}</Link>{" "}
        {texts.sentAfterHint}
      </>
    );
  }
  if (state !== "held" && blocking_pauses.some(({ name }) => name === "")) {
    return (
      <>
        {texts.resumeRelays} <Link href="/components">{texts.components}</Link>.
      </>
    );
  }
  const first = `${capitalize(hint)}.`;
  return state === "held" && alive_relay_count === 0 ? texts.startRelay(first) : first;
}

const LINKED = /(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} UTC|message \d+)/;

/** A text from the service, with times in the chosen time zone and message numbers as links. */
function Sentence({ text }: { text: string }) {
  return text.split(LINKED).map((part, index) => {
    const key = `${index}${part}`;
    if (index % 2 === 0) return <Fragment key={key}>{part}</Fragment>;
    if (part.endsWith(" UTC")) return <Moment key={key} at={`${part.slice(0, 10)}T${part.slice(11, 19)}Z`} />;
    return (
      <Link key={key} href={`/messages/${part.slice(8)}`}>
        {part}
      </Link>
    );
  });
}

function DueTime({ at }: { at: string }) {
  const isFuture = secondsSince(at, useNow()) < 0;
  return (
    <>
      {!isFuture && texts.wasDue}
      <Ago at={at} />, <span className={styles.quiet}>{isFuture && texts.at}</span>
      <Moment at={at} />
    </>
  );
}

/** A time and its age. Null if the release that held the message did not record the time. */
function Since({ at }: { at: string | null }) {
  if (at === null) return texts.unknownTime;
  return (
    <>
      {texts.since} <Moment at={at} />, <Ago at={at} />
    </>
  );
}

function Blocker({ message: { blocked_by, ordering_key } }: { message: Message }) {
  if (!blocked_by) return null;
  return (
    <>
      <Link href={`/messages/${blocked_by.id}`}>{texts.messageNumber(blocked_by.id)}</Link>
      {texts.whichIs(stateStyle(blocked_by.state).label)}{" "}
      <Link href={`/messages?ordering_key=${encodeURIComponent(ordering_key ?? "")}`}>{ordering_key}</Link>
    </>
  );
}

function Probe({ id }: { id: string }) {
  return (
    <>
      <Link href={`/messages/${id}`}>{texts.messageNumber(id)}</Link>
      {texts.probeHint}
    </>
  );
}

function Pauses({ of }: { of: Message["blocking_pauses"] }) {
  return (
    <ul>
      {of.map(({ name, reason, expires_at }) => (
        <li key={name}>
          <Link href="/components">{name === "" ? texts.allRelays : texts.relay(name)}</Link>
          {expires_at && (
            <>
              {" "}
              {texts.until} <Moment at={expires_at} short />
            </>
          )}
          {reason && `: ${reason}`}
        </li>
      ))}
    </ul>
  );
}
