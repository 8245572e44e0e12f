import { Link } from "wouter";
import { isElsewhere, isInformative, type MessageLine } from "~/api/messages";
import * as texts from "~/texts/messages";
import { Ago, Badge, State } from "~/ui";
import { addressOf } from "../parameters";
import styles from "./List.module.css";

/** A message in the list: state, routing key, error or preview, and the relevant time. */
export function Row({
  line,
  search,
  open,
  gone,
}: {
  line: MessageLine;
  search: string;
  open: boolean;
  gone: boolean;
}) {
  return (
    <li>
      <Link
        href={addressOf(line.id, search)}
        className={styles.row ?? ""}
        data-row={line.id}
        data-gone={gone || undefined}
        aria-current={open ? "true" : undefined}
      >
        <span className={styles.state}>
          {gone ? <Badge icon="right">{texts.resolved}</Badge> : <State of={line.state} />}
        </span>
        <span className={styles.key}>{line.routing_key}</span>
        <span className={styles.about}>
          <span className={styles.text}>
            {isInformative(line.last_error) ? line.last_error.message : line.preview}
          </span>
          {isElsewhere(line.destination) && (
            <span className={styles.ordering}>{texts.forDestination(line.destination)}</span>
          )}
          {line.ordering_key !== null && (
            <span className={styles.ordering}>{texts.key(line.ordering_key)}</span>
          )}
        </span>
        <span className={styles.when}>
          <When line={line} />
        </span>
      </Link>
    </li>
  );
}

/** Returns the element of a row. */
export function rowOf(id: string): HTMLElement | null {
  return document.querySelector(`[data-row="${CSS.escape(id)}"]`);
}

function When({ line }: { line: MessageLine }) {
  const { state, due_at, held_at, sent_at, failed_at, created_at } = line;
  if (state === "sent" && sent_at) return <LabelledAge label={texts.sentWord} at={sent_at} />;
  if (state === "parked" && failed_at) return <LabelledAge label={texts.parked} at={failed_at} />;
  if (held_at) return <LabelledAge label={texts.heldWord} at={held_at} />;
  if ((state === "scheduled" || state === "retrying") && due_at)
    return <LabelledAge label={texts.dueWord} at={due_at} />;
  return created_at ? <LabelledAge label={texts.publishedWord} at={created_at} /> : texts.noDate;
}

function LabelledAge({ label, at }: { label: string; at: string }) {
  return (
    <>
      {label} <Ago at={at} />
    </>
  );
}
