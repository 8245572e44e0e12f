import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "~/api/live";
import { type Listed, type Operation, operations } from "~/api/operations";
import { number } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/operations";
import { Ago, Button, Empty, Loaded, Page, Pager, Panel, State, Table } from "~/ui";
import { Export } from "~/ui/Export";
import { FailedAgain } from "./FailedAgain";
import styles from "./OperationList.module.css";
import { ProgressBar } from "./ProgressBar";
import { isOpen, stateOf, titleOf } from "./request";
import { useRows } from "./useRows";

const PARAMETERS = { cursor: text };

/** Refetch interval while operations are open. Results arrive after the live updates of an operation have ended. Milliseconds. */
const INTERVAL = 5_000;

/** All operations: active ones first, then newest first. */
export function OperationList() {
  const [{ cursor }, change] = useUrlState(PARAMETERS);
  const isPaused = useConnection() === "idle";
  const query = useQuery({
    ...operations(cursor),
    refetchInterval: ({ state }) => (state.data?.items.some(isOpen) && !isPaused ? INTERVAL : false),
  });
  return (
    <Page title={texts.title} actions={<Export list="operations" />}>
      <Panel title={texts.subtitle}>
        <Loaded query={query}>
          {(page) => (
            <List
              page={page}
              scope={query.isPlaceholderData ? "" : (cursor ?? "first")}
              busy={query.isPlaceholderData}
              onPageChange={(to) => change({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

function List({
  page,
  scope,
  busy,
  onPageChange,
}: {
  page: Listed;
  scope: string;
  busy: boolean;
  onPageChange(cursor: string): void;
}) {
  const { items, fresh, show } = useStableList(page.items, scope, idOf);
  const rows = useRows(
    texts.title,
    items.map(({ id }) => `/operations/${id}`),
  );
  if (items.length === 0) return <Empty title={texts.empty}>{texts.emptyHint}</Empty>;
  return (
    <>
      {fresh > 0 && (
        <p className={styles.fresh}>
          <Button icon="up" onClick={show}>
            {texts.fresh(fresh)}
          </Button>
        </p>
      )}
      <Table label={texts.title} head={HEAD}>
        {items.map((one, index) => (
          <Row key={one.id} of={one} current={rows.current === index} />
        ))}
      </Table>
      <Pager
        shown={items.length}
        next={page.next}
        previous={page.previous}
        onPageChange={onPageChange}
        busy={busy}
      />
    </>
  );
}

const HEAD = [
  texts.operation,
  texts.action,
  texts.status,
  texts.progress,
  texts.handled,
  texts.failedAgainFigure,
  texts.startedBy,
  texts.started,
];

function Row({ of, current }: { of: Operation; current: boolean }) {
  return (
    <tr data-selected={current || undefined}>
      <th scope="row">
        <Link href={`/operations/${of.id}`} data-row>
          {of.id}
        </Link>
      </th>
      <td>
        {titleOf(of)}
        {of.reason && <p className={styles.reason}>{of.reason}</p>}
      </td>
      <td>
        <State of={stateOf(of)} />
      </td>
      <td className={styles.progress}>
        <ProgressBar of={of} thin />
        <span className={styles.numbers}>{texts.ofTotal(of.settled_count, of.item_count)}</span>
      </td>
      <td>{of.results ? number(of.results.handled) : "—"}</td>
      <td>
        <FailedAgain of={of} />
      </td>
      <td>{of.requested_by ?? "—"}</td>
      <td>
        <Ago at={of.created_at} />
      </td>
    </tr>
  );
}

function idOf({ id }: Operation): string {
  return id;
}
