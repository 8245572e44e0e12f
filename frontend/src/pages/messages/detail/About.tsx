import type { ReactNode } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import type { Message, MessageState } from "~/api/messages";
import { number } from "~/lib/format";
import { CopyButton, Facts, Moment, Span } from "~/ui";
import styles from "./Detail.module.css";

/** Where the time that it is due is its own, and lies ahead or matters still. */
const DUE: ReadonlySet<MessageState> = new Set(["pending", "scheduled", "retrying"]);

/** What is recorded of the message, and where it leads. */
export function About({ message }: { message: Message }) {
  const { message_id, root_id, ordering_key, target_queue, dedup_key } = message;
  const id = message_id === null ? "made when it is sent" : <Id of={message_id} />;
  const chain = <Chain message={message} />;
  return (
    <section className={styles.part} aria-labelledby="about">
      <h3 id="about">About it</h3>
      <Facts
        of={[
          ["Message id", id],
          ["Chain", chain],
          ["Ordering key", ordering_key !== null && <Narrowed by="ordering_key" value={ordering_key} />],
          ["Target queue", target_queue !== null && <Narrowed by="target_queue" value={target_queue} />],
          ["Deduplication key", dedup_key !== null && <Id of={dedup_key} />],
          ["Written", message.created_at && <Moment at={message.created_at} milliseconds />],
          ["Due", message.due_at && DUE.has(message.state) && <Moment at={message.due_at} milliseconds />],
          ["Sent", message.sent_at && <Moment at={message.sent_at} milliseconds />],
          ["Given up", message.failed_at && <Moment at={message.failed_at} milliseconds />],
          ["Expires", message.expires_in_seconds !== null && <Expiry seconds={message.expires_in_seconds} />],
          ["Priority", message.priority !== 0 && number(message.priority)],
          ["Requeued", message.requeue_count > 0 && times(message.requeue_count)],
          ["Root of its chain", root_id !== null && root_id !== message_id && <Id of={root_id} />],
        ]}
      />
    </section>
  );
}

function Chain({ message: { message_id, root_id, tracking_ids } }: { message: Message }): ReactNode {
  const known = message_id ?? root_id ?? tracking_ids[0];
  if (known === undefined || known === null) return "not known before it is sent";
  return <Link href={chainAddress(known)}>Everything that it came of and led to</Link>;
}

function Narrowed({ by, value }: { by: "ordering_key" | "target_queue"; value: string }) {
  return (
    <Link href={`/messages?${by}=${encodeURIComponent(value)}`} title="All messages with it">
      {value}
    </Link>
  );
}

function Id({ of }: { of: string }) {
  return (
    <span className={styles.withCopy}>
      <span className={styles.mono}>{of}</span> <CopyButton text={of} label="Copy this id" />
    </span>
  );
}

function Expiry({ seconds }: { seconds: number }) {
  return (
    <>
      <Span seconds={seconds} /> after it was sent
    </>
  );
}

function times(count: number): string {
  return count === 1 ? "once" : `${number(count)} times`;
}
