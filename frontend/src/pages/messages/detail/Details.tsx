import type { ReactNode } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import { isElsewhere, type Message, type MessageState } from "~/api/messages";
import { number } from "~/lib/format";
import * as texts from "~/texts/messages";
import { CopyButton, Facts, Moment, Span } from "~/ui";
import { externalFacts } from "~/ui/External";
import styles from "./Detail.module.css";

/** States in which the due time is relevant. */
const HAS_DUE_TIME: ReadonlySet<MessageState> = new Set(["pending", "scheduled", "retrying"]);

/** The recorded facts about a message, with links. */
export function Details({ message }: { message: Message }) {
  const { message_id, root_id, ordering_key, target_queue, dedup_key } = message;
  const id = message_id === null ? texts.setWhenSent : <Id of={message_id} />;
  const chain = <Chain message={message} />;
  return (
    <section className={styles.part} aria-labelledby="about">
      <h3 id="about">{texts.details}</h3>
      <Facts
        of={[
          [texts.messageId, id],
          [texts.chain, chain],
          ...externalFacts(message),
          [texts.orderingKey, ordering_key !== null && <FilterLink by="ordering_key" value={ordering_key} />],
          [texts.targetQueue, target_queue !== null && <FilterLink by="target_queue" value={target_queue} />],
          [
            texts.destination,
            isElsewhere(message.destination) && <FilterLink by="destination" value={message.destination} />,
          ],
          [texts.deduplicationKey, dedup_key !== null && <Id of={dedup_key} />],
          [texts.published, message.created_at && <Moment at={message.created_at} milliseconds />],
          [
            texts.due,
            message.due_at && HAS_DUE_TIME.has(message.state) && <Moment at={message.due_at} milliseconds />,
          ],
          [texts.sent, message.sent_at && <Moment at={message.sent_at} milliseconds />],
          [texts.parkedAt, message.failed_at && <Moment at={message.failed_at} milliseconds />],
          [
            texts.expires,
            message.expiration_seconds !== null && <Expiry seconds={message.expiration_seconds} />,
          ],
          [texts.priority, message.priority !== 0 && number(message.priority)],
          [texts.requeued, message.requeue_count > 0 && texts.times(message.requeue_count)],
          [texts.rootId, root_id !== null && root_id !== message_id && <Id of={root_id} />],
        ]}
      />
    </section>
  );
}

function Chain({ message: { message_id, root_id, tracking_ids } }: { message: Message }): ReactNode {
  const known = message_id ?? root_id ?? tracking_ids[0];
  if (known === undefined || known === null) return texts.chainUnknown;
  return <Link href={chainAddress(known)}>{texts.showChain}</Link>;
}

function FilterLink({ by, value }: { by: "ordering_key" | "target_queue" | "destination"; value: string }) {
  return (
    <Link href={`/messages?${by}=${encodeURIComponent(value)}`} title={texts.allWithIt}>
      {value}
    </Link>
  );
}

function Id({ of }: { of: string }) {
  return (
    <span className={styles.withCopy}>
      <span className={styles.mono}>{of}</span> <CopyButton text={of} label={texts.copyId} />
    </span>
  );
}

function Expiry({ seconds }: { seconds: number }) {
  return (
    <>
      <Span seconds={seconds} /> {texts.afterSent}
    </>
  );
}
