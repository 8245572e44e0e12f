import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import { isTelling, type Message } from "~/api/messages";
import { useNow } from "~/lib/clock";
import { capital, secondsSince } from "~/lib/format";
import { Ago, Facts, Icon, lookOf, Moment, type Tone } from "~/ui";
import styles from "./Detail.module.css";

/** Why the message is where it is, what happens next, and what a person can do about it. */
export function Why({ message }: { message: Message }) {
  const mend = mendOf(message);
  const waits = message.state !== "sent" && message.state !== "parked";
  return (
    <section className={styles.part} aria-labelledby="why">
      <h3 id="why">Why it is here</h3>
      <div className={styles.why} data-tone={toneOf(message)}>
        <p className={styles.reason}>
          <Sentence text={message.reason} />
        </p>
        <Facts
          of={[
            ["Next attempt", message.next_attempt_at && <When at={message.next_attempt_at} />],
            ["Unroutable", message.state === "held" && <Since at={message.held_at} />],
            ["Stalled", message.state === "stalled" && <Since at={message.held_at} />],
            ["Blocked by", message.blocked_by && <Blocker message={message} />],
            [
              "Probed by",
              message.probed_by && message.probed_by !== message.id && <Probe id={message.probed_by} />,
            ],
            ["Paused", message.paused_by.length > 0 && <Pauses of={message.paused_by} />],
            ["Relays", waits && message.living_relays === 0 && "none is running"],
            ["Refused", message.attempts > 0 && times(message.attempts)],
          ]}
        />
        {isTelling(message.last_error) && <p className={styles.error}>{message.last_error}</p>}
        {mend && (
          <p className={styles.mend}>
            <Icon name="right" />
            <span>{mend}</span>
          </p>
        )}
      </div>
    </section>
  );
}

/** Something that is fine by itself is not while nobody sends. */
function toneOf({ state, living_relays, paused_by }: Message): Tone {
  const { tone } = lookOf(state);
  const stands = state !== "sent" && (living_relays === 0 || paused_by.some(({ name }) => name === ""));
  return stands && tone !== "bad" ? "warn" : tone;
}

/** What mends it, in words of this page where it can be done from here. */
function mendOf({ id, state, mend, paused_by, living_relays, blocked_by }: Message): ReactNode {
  if (state === "parked") {
    return (
      <>
        Requeue or discard it as <Link href={`/dead-letters/outbox-${id}`}>dead letter outbox-{id}</Link>.
      </>
    );
  }
  if (mend === null) {
    if (!blocked_by) return null;
    return (
      <>
        It follows by itself once <Link href={`/messages/${blocked_by.id}`}>message {blocked_by.id}</Link> is
        through: look there for what that waits for.
      </>
    );
  }
  if (state !== "held" && paused_by.some(({ name }) => name === "")) {
    return (
      <>
        Resume the relays on the page <Link href="/components">Components</Link>.
      </>
    );
  }
  const first = `${capital(mend)}.`;
  return state === "held" && living_relays === 0 ? `${first} And start a relay: none is running.` : first;
}

const LINKED = /(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} UTC|message \d+)/;

/** The reason as the service words it, with its times in the chosen zone and the messages it names as links. */
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

function When({ at }: { at: string }) {
  const ahead = secondsSince(at, useNow()) < 0;
  return (
    <>
      {!ahead && "was due "}
      <Ago at={at} />, <span className={styles.quiet}>{ahead && "at "}</span>
      <Moment at={at} />
    </>
  );
}

/** Null: a release that kept no such time held it. */
function Since({ at }: { at: string | null }) {
  if (at === null) return "since some time that was not recorded";
  return (
    <>
      since <Moment at={at} />, <Ago at={at} />
    </>
  );
}

function Blocker({ message: { blocked_by, ordering_key } }: { message: Message }) {
  if (!blocked_by) return null;
  return (
    <>
      <Link href={`/messages/${blocked_by.id}`}>message {blocked_by.id}</Link>, which is{" "}
      {lookOf(blocked_by.state).label}, of the ordering key{" "}
      <Link href={`/messages?ordering_key=${encodeURIComponent(ordering_key ?? "")}`}>{ordering_key}</Link>
    </>
  );
}

function Probe({ id }: { id: string }) {
  return (
    <>
      <Link href={`/messages/${id}`}>message {id}</Link>, which is tried for all that go its way
    </>
  );
}

function Pauses({ of }: { of: Message["paused_by"] }) {
  return (
    <ul>
      {of.map(({ name, reason, until }) => (
        <li key={name}>
          <Link href="/components">{name === "" ? "all relays" : `the relay ${name}`}</Link>
          {until && (
            <>
              {" "}
              until <Moment at={until} short />
            </>
          )}
          {reason && `: ${reason}`}
        </li>
      ))}
    </ul>
  );
}

function times(attempts: number): string {
  return attempts === 1 ? "once" : `${attempts} times`;
}
