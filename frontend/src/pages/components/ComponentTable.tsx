import { Fragment, useRef } from "react";
import type { Component } from "~/api/components";
import { useNow } from "~/lib/clock";
import { age, secondsSince } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/components";
import { Ago, Badge, Icon, State, Table } from "~/ui";
import { activityOf, queuesOf } from "./activity";
import styles from "./Components.module.css";
import { Detail } from "./Detail";
import type { PauseActions } from "./PauseButton";

export interface ComponentTableProps extends PauseActions {
  items: readonly Component[];
  /** IDs of components that the service no longer reports. */
  gone: ReadonlySet<string>;
  open: string | undefined;
  onOpen(id: string | undefined): void;
}

/** A table of components. The open one shows its details below its row. */
export function ComponentTable({ items, gone, open, onOpen, ...pausing }: ComponentTableProps) {
  const container = useRef<HTMLDivElement>(null);
  useShortcuts(texts.title, [
    { keys: "j", label: texts.next, run: () => step(container.current, 1) },
    { keys: "k", label: texts.previous, run: () => step(container.current, -1) },
    { keys: "Escape", label: texts.close, run: () => open && onOpen(undefined) },
  ]);
  return (
    <div ref={container} className={styles.list}>
      <Table
        folds
        label={texts.title}
        head={[texts.component, texts.status, texts.activity, texts.lastHeartbeat, texts.host, texts.version]}
      >
        {items.map((one) => (
          <Fragment key={one.id}>
            <Row one={one} gone={gone.has(one.id)} open={open === one.id} onOpen={onOpen} />
            {open === one.id && (
              <tr role="row" className={styles.detail} id={`detail-${one.id}`}>
                <td role="cell" colSpan={6}>
                  <Detail of={one} {...pausing} />
                </td>
              </tr>
            )}
          </Fragment>
        ))}
      </Table>
    </div>
  );
}

function Row({
  one,
  gone,
  open,
  onOpen,
}: {
  one: Component;
  gone: boolean;
  open: boolean;
  onOpen(id: string | undefined): void;
}) {
  const queues = queuesOf(one);
  return (
    <tr
      role="row"
      data-ended={one.status === "stopped" || gone || undefined}
      data-selected={open || undefined}
    >
      <th role="rowheader" scope="row">
        <button
          type="button"
          className={styles.name}
          data-row
          aria-expanded={open}
          aria-controls={open ? `detail-${one.id}` : undefined}
          onClick={() => onOpen(open ? undefined : one.id)}
        >
          <Icon name={open ? "down" : "right"} />
          <span>
            {one.name}
            <span className={styles.kind}>
              {one.kind}
              {queues && `, ${queues}`}
            </span>
          </span>
        </button>
      </th>
      <td role="cell">
        {gone ? <Badge icon="stop">{texts.gone}</Badge> : <State of={one.status} />}
        <span className={styles.below}>
          {texts.forTime} <Elapsed since={one.statusChangedAt} />
        </span>
      </td>
      <td role="cell">
        <ul className={styles.does}>
          {activityOf(one).map((text) => (
            <li key={text}>{text}</li>
          ))}
          {one.activity.lastFailure && one.status !== "stopped" && (
            <li className={styles.below}>
              {texts.lastErrorShort} <Ago at={one.activity.lastFailure.failed_at} />
            </li>
          )}
        </ul>
      </td>
      <td role="cell" className={styles.nowrap}>
        <span data-head>{texts.lastHeartbeat} </span>
        <Ago at={one.lastHeartbeatAt} />
      </td>
      <td role="cell">
        <span data-head>{texts.host} </span>
        {one.host} <span className={styles.below}>{texts.process(one.processId)}</span>
      </td>
      <td role="cell">
        <span data-head>{texts.version} </span>
        {one.version}
      </td>
    </tr>
  );
}

function Elapsed({ since }: { since: string }) {
  const now = useNow();
  return <time dateTime={since}>{age(secondsSince(since, now))}</time>;
}

/** Moves focus to the button of the next or previous row. Enter then opens it. */
function step(container: HTMLElement | null, by: 1 | -1): void {
  const rows = [...(container?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[to]?.focus();
}
