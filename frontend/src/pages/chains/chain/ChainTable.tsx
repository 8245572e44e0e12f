import { memo, useMemo, useRef } from "react";
import { number } from "~/lib/format";
import * as texts from "~/texts/chains";
import { Button, Span, State, Table } from "~/ui";
import styles from "./ChainTable.module.css";
import { nameOf } from "./descriptions";
import { type Line, linesOf, type SortBy, sorted } from "./lines";
import { type Order, SortButton } from "./SortButton";
import type { ChainHandlers, ChainView } from "./view";

/** Rows per page. More rows of ten cells each take noticeably long to render on a slow machine. */
const PAGE = 30;
const COLUMNS: readonly (readonly [SortBy | undefined, string])[] = [
  ["chain", texts.message],
  [undefined, texts.cause],
  [undefined, texts.queue],
  ["state", texts.status],
  ["published", texts.publishedAfter],
  ["outbox", texts.inOutbox],
  ["broker", texts.inBroker],
  ["handling", texts.handling],
  ["attempts", texts.attempts],
  [undefined, texts.lastError],
];

/** The chain as a table, with one row per message and queue. */
export function ChainTable({
  chainView,
  handlers,
  order,
}: {
  chainView: ChainView;
  handlers: ChainHandlers;
  order: Order;
}) {
  const { by, down, change } = order;
  const lines = useMemo(() => sorted(linesOf(chainView.tree.items), by, down), [chainView.tree, by, down]);
  const pages = Math.max(1, Math.ceil(lines.length / PAGE));
  const page = Math.min(order.page, pages);
  const shown = lines.slice((page - 1) * PAGE, page * PAGE);
  const top = useRef<HTMLDivElement>(null);
  function goToPage(to: number) {
    change({ page: to > 1 ? to : undefined });
    top.current?.scrollIntoView({ block: "start" });
  }
  const head = COLUMNS.map(([column, words]) =>
    column === undefined ? words : <SortButton key={column} column={column} words={words} order={order} />,
  );
  return (
    <div ref={top} className={styles.container}>
      <Table label={texts.messagesOfChain} head={head}>
        {shown.map((line) => (
          <LineRow
            key={line.key}
            line={line}
            origin={chainView.extent?.from}
            selected={line.item.message.id === handlers.selected}
            choose={handlers.choose}
          />
        ))}
      </Table>
      {pages > 1 && (
        <nav className={styles.pager} aria-label={texts.tablePages}>
          <Button
            icon="left"
            whyNot={page > 1 ? undefined : texts.firstPage}
            onClick={() => goToPage(page - 1)}
          >
            {texts.previousPage}
          </Button>
          <span>{texts.lines((page - 1) * PAGE + 1, Math.min(page * PAGE, lines.length), lines.length)}</span>
          <Button whyNot={page < pages ? undefined : texts.lastPage} onClick={() => goToPage(page + 1)}>
            {texts.nextPage}
          </Button>
        </nav>
      )}
    </div>
  );
}

const LineRow = memo(function LineRow({
  line,
  origin,
  selected,
  choose,
}: {
  line: Line;
  /** Start of the chain, in milliseconds since the epoch. */
  origin: number | undefined;
  selected: boolean;
  choose(id: string): void;
}) {
  const { item, delivery, state, error } = line;
  const { message, parent } = item;
  const published = message.published_at === null ? undefined : Date.parse(message.published_at);
  const publishedAfter =
    published === undefined || origin === undefined ? undefined : (published - origin) / 1000;
  return (
    <tr data-selected={selected || undefined}>
      <th scope="row">
        <button
          type="button"
          className={styles.message}
          aria-pressed={selected}
          title={message.id}
          data-critical={item.critical || undefined}
          onClick={() => choose(message.id)}
        >
          {nameOf(item)}
        </button>
        {item.critical && <div className={styles.quiet}>{texts.onCriticalPath}</div>}
      </th>
      <td>{parent ? nameOf(parent) : item.orphan ? texts.unknownCause : texts.startOfChain}</td>
      <td>{delivery?.queue ?? "—"}</td>
      <td>
        <State of={state} />
      </td>
      <td className={styles.number} title={message.published_at ?? undefined}>
        <Span seconds={publishedAfter} />
      </td>
      <td className={styles.number}>
        <Span seconds={message.waited_seconds} />
      </td>
      <td className={styles.number}>
        <Span seconds={delivery?.waited_seconds} />
      </td>
      <td className={styles.number}>
        <Span seconds={delivery?.handling_seconds} />
      </td>
      <td className={styles.number}>{delivery ? number(delivery.attempt_count) : "—"}</td>
      <td data-text title={error}>
        {error ?? "—"}
      </td>
    </tr>
  );
});
