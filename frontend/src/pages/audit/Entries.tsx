import { Fragment, useRef } from "react";
import { Link } from "wouter";
import type { Entry } from "~/api/audit";
import { useGroupTitle } from "~/api/dead-letters";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/audit";
import { Badge, CopyButton, Facts, Icon, Moment, Table } from "~/ui";
import styles from "./Audit.module.css";
import { actionLabel, groupOf, pageOf } from "./actions";

/** The entries, newest first. The open one shows all recorded details. */
export function Entries({
  items,
  open,
  onOpen,
  onNarrow,
}: {
  items: readonly Entry[];
  open: string | undefined;
  onOpen(id: string | undefined): void;
  onNarrow(changes: { actor?: string; target?: string }): void;
}) {
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
        head={[texts.time, texts.actor, texts.action, texts.target, texts.outcome]}
      >
        {items.map((entry) => (
          <Fragment key={entry.id}>
            <Row entry={entry} open={open === entry.id} onOpen={onOpen} />
            {open === entry.id && (
              <tr role="row" className={styles.detail} id={`entry-${entry.id}`}>
                <td role="cell" colSpan={5}>
                  <Details of={entry} onNarrow={onNarrow} />
                </td>
              </tr>
            )}
          </Fragment>
        ))}
      </Table>
    </div>
  );
}

function Row({ entry, open, onOpen }: { entry: Entry; open: boolean; onOpen(id: string | undefined): void }) {
  const page = pageOf(entry);
  const title = useGroupTitle(groupOf(entry));
  return (
    <tr role="row" data-selected={open || undefined}>
      <th role="rowheader" scope="row">
        <button
          type="button"
          className={styles.when}
          data-row
          aria-expanded={open}
          aria-controls={open ? `entry-${entry.id}` : undefined}
          onClick={() => onOpen(open ? undefined : entry.id)}
        >
          <Icon name={open ? "down" : "right"} />
          <Moment at={entry.created_at} short />
        </button>
      </th>
      <td role="cell" className={styles.actor}>
        {entry.actor} <span className={styles.quiet}>{entry.role}</span>
      </td>
      <td role="cell">
        {actionLabel(entry.action)}
        <code className={styles.code}>{entry.action}</code>
      </td>
      <td role="cell" className={styles.target}>
        {page && entry.target ? <Link href={page}>{title ?? entry.target}</Link> : entry.target || "—"}
        {entry.reason && <span className={styles.reason}>{entry.reason}</span>}
      </td>
      <td role="cell">
        {entry.outcome === "done" ? (
          <Badge tone="good">{texts.done}</Badge>
        ) : (
          <Badge tone={entry.outcome === "denied" ? "bad" : "warn"} icon="lost">
            {entry.outcome}
          </Badge>
        )}
      </td>
    </tr>
  );
}

function Details({
  of,
  onNarrow,
}: {
  of: Entry;
  onNarrow(changes: { actor?: string; target?: string }): void;
}) {
  const details = Object.keys(of.details).length > 0 ? JSON.stringify(of.details, null, 2) : undefined;
  return (
    <div className={styles.inside}>
      <Facts
        of={[
          [texts.time, <Moment key="" at={of.created_at} milliseconds />],
          [texts.reason, of.reason],
          [texts.address, of.address],
          [
            texts.request,
            of.request_id && (
              <>
                <code>{of.request_id}</code> <CopyButton text={of.request_id} label={texts.copyRequest} />
              </>
            ),
          ],
          [texts.clientAddress, of.client_request_id && <code key="">{of.client_request_id}</code>],
          [texts.entry, of.id],
        ]}
      />
      {details && <pre className={styles.json}>{details}</pre>}
      <p className={styles.narrow}>
        <button type="button" className="as-link" onClick={() => onNarrow({ actor: of.actor })}>
          {texts.byActor(of.actor)}
        </button>
        {of.target && (
          <button type="button" className="as-link" onClick={() => onNarrow({ target: of.target })}>
            {texts.onTarget(of.target)}
          </button>
        )}
      </p>
    </div>
  );
}

/** Moves focus to the button of the next or previous row. Enter then opens it. */
function step(container: HTMLElement | null, by: 1 | -1): void {
  const rows = [...(container?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[to]?.focus();
}
