import { useEffect, useRef } from "react";
import { Link } from "wouter";
import type { Leg } from "~/api/chains";
import { plural, span } from "~/lib/format";
import { Ago, CopyButton, Facts, IconButton, lookOf, Moment, State } from "~/ui";
import { Attempts } from "./Attempts";
import styles from "./Detail.module.css";
import type { Item } from "./tree";
import { nameOf } from "./words";

/** The facts of the message that was selected, and the ways to it. */
export function Detail({
  item,
  asked,
  choose,
  close,
}: {
  item: Item;
  /** It is the one that the chain was looked up by. */
  asked: boolean;
  choose(id: string): void;
  close(): void;
}) {
  const { message, parent } = item;
  const top = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another message begins at its top
  useEffect(() => {
    if (top.current) top.current.scrollTop = 0;
  }, [message.id]);
  return (
    <section ref={top} className={styles.detail} aria-label="The selected message">
      <header className={styles.head}>
        <h2>{nameOf(item)}</h2>
        <IconButton icon="cross" label="Close" onClick={close} />
      </header>
      <p className={styles.state}>
        <State of={message.state} /> <span>{lookOf(message.state).meaning}</span>
      </p>
      {message.last_error && <p className={styles.error}>{message.last_error}</p>}
      <Facts
        of={[
          ["Id", <Id key="id" id={message.id} />],
          ["Looked up", asked ? "by this message's id" : null],
          ["Critical path", item.critical ? "lies on it" : null],
          ["Follows from", parent ? <Jump key="parent" to={parent} choose={choose} /> : orphanWords(item)],
          ["Led to", item.below > 0 ? ledTo(item) : null],
          ["Published", message.published_at && <Moment at={message.published_at} milliseconds />],
          ["Sent", message.sent_at && <Moment at={message.sent_at} milliseconds />],
          ["In the outbox", message.waited_seconds === null ? null : span(message.waited_seconds)],
          ["Sent by", message.relay],
          [
            message.state === "stalled" ? "Stalled since" : "Unroutable since",
            message.held_at && <At at={message.held_at} />,
          ],
          ["Due", message.due_at && <At at={message.due_at} />],
          ["Requeued", message.requeue_count > 0 ? plural(message.requeue_count, "time") : null],
        ]}
      />
      <Ways item={item} />
      {message.legs.map((leg) => (
        <InQueue key={leg.queue} leg={leg} />
      ))}
    </section>
  );
}

function Id({ id }: { id: string }) {
  return (
    <span className={styles.id}>
      <code>{id}</code> <CopyButton text={id} label="Copy the id" />
    </span>
  );
}

function Jump({ to, choose }: { to: Item; choose(id: string): void }) {
  return (
    <button type="button" className="as-link" onClick={() => choose(to.message.id)}>
      {nameOf(to)}
    </button>
  );
}

function orphanWords({ message, orphan }: Item): string | null {
  if (!orphan) return null;
  return message.parent_id === null
    ? "Nothing tells what led to it."
    : `${message.parent_id}, of which nothing is known here.`;
}

function ledTo({ children, below }: Item): string {
  const direct = plural(children.length, "message");
  return below > children.length
    ? `${direct}, and ${plural(below - children.length, "more", "more")} after them`
    : direct;
}

function At({ at }: { at: string }) {
  return (
    <>
      <Moment at={at} /> (<Ago at={at} />)
    </>
  );
}

const MAY_HAVE_DIED: ReadonlySet<string> = new Set(["dead", "parked", "requeued", "discarded"]);

/** Where else this message can be seen. */
function Ways({ item: { message } }: { item: Item }) {
  const id = new URLSearchParams({ message_id: message.id });
  const died =
    MAY_HAVE_DIED.has(message.state) ||
    message.requeue_count > 0 ||
    message.legs.some(
      ({ state, tries }) => MAY_HAVE_DIED.has(state) || tries.some(({ outcome }) => outcome === "died"),
    );
  return (
    <p className={styles.ways}>
      {died && <Link href={`/dead-letters?${id}&status=any`}>Its dead letter</Link>}
      <Link href={`/messages?${id}`}>In the outbox</Link>
    </p>
  );
}

/** `the queue is paused by ada: stocktaking, 4 min ago`, and how many are ahead of it where that is not the reason. */
function Because({ waiting }: { waiting: NonNullable<Leg["waiting"]> }) {
  const { reason, text, ahead, paused_at } = waiting;
  return (
    <>
      {text}
      {paused_at && (
        <>
          , <Ago at={paused_at} />
        </>
      )}
      {reason !== "behind" && ahead ? `; ${plural(ahead, "delivery is", "deliveries are")} ahead of it` : ""}
    </>
  );
}

function InQueue({ leg }: { leg: Leg }) {
  return (
    <section className={styles.queue} aria-label={leg.queue}>
      <header>
        <h3>{leg.queue}</h3>
        <State of={leg.state} />
      </header>
      <Facts
        of={[
          ["First taken", leg.received_at && <Moment at={leg.received_at} milliseconds />],
          [
            "In the broker",
            leg.waited_seconds === null ? null : `${span(leg.waited_seconds)} before the first attempt`,
          ],
          ["Handling", leg.handling_seconds === null ? null : span(leg.handling_seconds)],
          ["Attempts", leg.attempts > 0 ? leg.attempts : null],
          ["Waits because", leg.waiting && <Because key="waiting" waiting={leg.waiting} />],
          ["Next attempt", leg.due_at && <At at={leg.due_at} />],
        ]}
      />
      <Attempts leg={leg} />
    </section>
  );
}
