import { useEffect, useRef } from "react";
import { Link } from "wouter";
import type { Delivery } from "~/api/chains";
import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import * as common from "~/texts/common";
import { stateMeanings } from "~/texts/state-meanings";
import { Ago, CopyButton, Facts, IconButton, Moment, State } from "~/ui";
import { externalFacts } from "~/ui/External";
import { Attempts } from "./Attempts";
import styles from "./Detail.module.css";
import { nameOf } from "./descriptions";
import type { Item } from "./tree";

/** Details of the selected message, and links to other pages about it. */
export function Detail({
  item,
  isLookedUp,
  choose,
  close,
}: {
  item: Item;
  /** Whether the chain was looked up by this message's ID. */
  isLookedUp: boolean;
  choose(id: string): void;
  close(): void;
}) {
  const { message, parent } = item;
  const top = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll to the top when another message is selected
  useEffect(() => {
    if (top.current) top.current.scrollTop = 0;
  }, [message.id]);
  return (
    <section ref={top} className={styles.detail} aria-label={texts.selectedMessage}>
      <header className={styles.head}>
        <h2>{nameOf(item)}</h2>
        <IconButton icon="cross" label={common.close} onClick={close} />
      </header>
      <p className={styles.state}>
        <State of={message.state} /> <span>{stateMeanings[message.state]}</span>
      </p>
      {message.last_error && <p className={styles.error}>{message.last_error.message}</p>}
      <Facts
        of={[
          [texts.id, <Id key="id" id={message.id} />],
          [texts.lookedUp, isLookedUp ? texts.byThisId : null],
          [texts.criticalPath, item.critical ? texts.yes : null],
          [
            texts.cause,
            parent ? <MessageButton key="parent" item={parent} choose={choose} /> : missingCause(item),
          ],
          [texts.effects, item.descendantCount > 0 ? effectsOf(item) : null],
          [texts.published, message.published_at && <Moment at={message.published_at} milliseconds />],
          [texts.sent, message.sent_at && <Moment at={message.sent_at} milliseconds />],
          [texts.inOutbox, message.waited_seconds === null ? null : span(message.waited_seconds)],
          [texts.sentBy, message.relay],
          [
            message.state === "stalled" ? texts.stalledSince : texts.unroutableSince,
            message.held_at && <At at={message.held_at} />,
          ],
          [texts.due, message.due_at && <At at={message.due_at} />],
          [texts.requeued, message.requeue_count > 0 ? texts.times(message.requeue_count) : null],
          ...externalFacts(message),
        ]}
      />
      <RelatedLinks item={item} />
      {message.deliveries.map((delivery) => (
        <InQueue key={delivery.queue} delivery={delivery} />
      ))}
    </section>
  );
}

function Id({ id }: { id: string }) {
  return (
    <span className={styles.id}>
      <code>{id}</code> <CopyButton text={id} label={texts.copyId} />
    </span>
  );
}

function MessageButton({ item, choose }: { item: Item; choose(id: string): void }) {
  return (
    <button type="button" className="as-link" onClick={() => choose(item.message.id)}>
      {nameOf(item)}
    </button>
  );
}

function missingCause({ message, orphan }: Item): string | null {
  if (!orphan) return null;
  return message.parent_id === null ? texts.causeUnknown : texts.causeNotFound(message.parent_id);
}

function effectsOf({ children, descendantCount }: Item): string {
  const direct = texts.messagesCount(children.length);
  return descendantCount > children.length
    ? texts.effectsCount(direct, descendantCount - children.length)
    : direct;
}

function At({ at }: { at: string }) {
  return (
    <>
      <Moment at={at} /> (<Ago at={at} />)
    </>
  );
}

const MAY_HAVE_DEAD_LETTER: ReadonlySet<string> = new Set(["dead", "parked", "requeued", "discarded"]);

/** Links to the other pages that show this message. */
function RelatedLinks({ item: { message } }: { item: Item }) {
  const id = new URLSearchParams({ message_id: message.id });
  const hasDeadLetter =
    MAY_HAVE_DEAD_LETTER.has(message.state) ||
    message.requeue_count > 0 ||
    message.deliveries.some(
      ({ state, attempts }) =>
        MAY_HAVE_DEAD_LETTER.has(state) || attempts.some(({ outcome }) => outcome === "dead_lettered"),
    );
  return (
    <p className={styles.links}>
      {hasDeadLetter && <Link href={`/dead-letters?view=messages&${id}&status=any`}>{texts.deadLetter}</Link>}
      <Link href={`/messages?${id}`}>{texts.messageInOutbox}</Link>
    </p>
  );
}

/** For example `the queue is paused by ada: stocktaking, 4 min ago`, with the number of deliveries ahead unless that is the reason. */
function WaitingReason({ waiting }: { waiting: NonNullable<Delivery["waiting"]> }) {
  const { reason, text, ahead_count: ahead, paused_at } = waiting;
  return (
    <>
      {text}
      {paused_at && (
        <>
          , <Ago at={paused_at} />
        </>
      )}
      {reason !== "behind" && ahead ? texts.ahead(ahead) : ""}
    </>
  );
}

function InQueue({ delivery }: { delivery: Delivery }) {
  return (
    <section className={styles.queue} aria-label={delivery.queue}>
      <header>
        <h3>{delivery.queue}</h3>
        <State of={delivery.state} />
      </header>
      <Facts
        of={[
          [texts.firstTaken, delivery.received_at && <Moment at={delivery.received_at} milliseconds />],
          [
            texts.inBroker,
            delivery.waited_seconds === null ? null : texts.waitBeforeFirst(span(delivery.waited_seconds)),
          ],
          [texts.handling, delivery.handling_seconds === null ? null : span(delivery.handling_seconds)],
          [texts.attempts, delivery.attempt_count > 0 ? delivery.attempt_count : null],
          [texts.waitingFor, delivery.waiting && <WaitingReason key="waiting" waiting={delivery.waiting} />],
          [texts.nextAttempt, delivery.due_at && <At at={delivery.due_at} />],
        ]}
      />
      <Attempts delivery={delivery} />
    </section>
  );
}
