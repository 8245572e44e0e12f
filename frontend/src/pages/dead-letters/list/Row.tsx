import { type MouseEvent, memo, useRef } from "react";
import { Link } from "wouter";
import type { Line } from "~/api/dead-letters";
import { isElsewhere } from "~/api/messages";
import * as texts from "~/texts/dead-letters";
import { Ago, Badge, Checkbox, Icon, State } from "~/ui";
import { addressOf } from "../parameters";
import styles from "./Row.module.css";

export interface RowProps {
  line: Line;
  selected: boolean;
  open: boolean;
  /** No longer in the latest response. */
  gone: boolean;
  onToggle(id: string, through: boolean): void;
}

/** A dead letter in two lines: error and time, then status, queue and message. */
export const Row = memo(function Row({ line, selected, open, gone, onToggle }: RowProps) {
  const shift = useRef(false);
  const { id, error } = line;
  /** A click with Shift selects up to this row, also on the link, where it would open a new window. */
  function onClickCapture(event: MouseEvent) {
    shift.current = event.shiftKey;
    if (!event.shiftKey || !(event.target as Element).closest("a")) return;
    event.preventDefault();
    event.stopPropagation();
    onToggle(id, true);
  }
  return (
    <li
      className={styles.row}
      data-selected={selected || undefined}
      data-open={open || undefined}
      data-gone={gone || undefined}
      onMouseDown={(event) => event.shiftKey && event.preventDefault()}
      onClickCapture={onClickCapture}
      onKeyDownCapture={(event) => {
        shift.current = event.shiftKey;
      }}
    >
      <span className={styles.check}>
        <Checkbox
          label={texts.select(id)}
          hideLabel
          checked={selected}
          onChange={() => onToggle(id, shift.current)}
        />
      </span>
      <Link
        href={addressOf(id)}
        className={styles.link ?? ""}
        aria-current={open ? "true" : undefined}
        data-dead-letter={id}
      >
        <span className={styles.first}>
          <strong className={styles.type}>{shortType(error.type)}</strong>
          <span className={styles.message}>{error.message}</span>
          <span className={styles.when}>
            <Ago at={line.failed_at} />
          </span>
        </span>
        <span className={styles.second}>
          <Marks line={line} gone={gone} />
          <span className={styles.where}>{line.queue || texts.anyQueue}</span>
          <span className={styles.where}>{line.routing_key}</span>
          {isElsewhere(line.destination) && (
            <span className={styles.where}>{texts.forDestination(line.destination)}</span>
          )}
          <span className={styles.failures}>{texts.failuresOf(line.failure_count)}</span>
          <code className={styles.preview}>{line.preview}</code>
        </span>
      </Link>
    </li>
  );
});

function Marks({ line, gone }: { line: Line; gone: boolean }) {
  return (
    <>
      {gone && <Badge icon="check">{texts.resolved}</Badge>}
      {!gone && line.status !== "open" && <State of={line.status} />}
      {line.dead_letter_count > 1 && line.status !== "requeued" && (
        <span className={styles.again}>
          <Icon name="dead" /> {texts.failedAgain(line.dead_letter_count - 1)}
        </span>
      )}
    </>
  );
}

/** Returns the class name without its module: `Reject` for `outbox.errors.Reject`. */
export function shortType(type: string): string {
  return type.split(".").at(-1) || texts.unknownError;
}

/** Returns the link element of a row. */
export function rowOf(id: string): HTMLElement | undefined {
  const rows = document.querySelectorAll<HTMLElement>("[data-dead-letter]");
  return [...rows].find((row) => row.dataset.deadLetter === id);
}
