import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "~/api/live";
import { type Listed, type Operation, operations } from "~/api/operations";
import { number, plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { text, useUrlState } from "~/lib/url-state";
import { Ago, Button, Empty, Loaded, Page, Pager, Panel, State, Table } from "~/ui";
import { DiedAgain } from "./DiedAgain";
import styles from "./OperationList.module.css";
import { Progress } from "./Progress";
import { useRows } from "./useRows";
import { isOpen, stateOf, titleOf } from "./words";

const PARAMETERS = { cursor: text };

/** The stream tells of operations that go on; results come after that, too. */
const EVERY = 5_000;

/** All operations: those that go on first, then the newest. */
export function OperationList() {
  const [{ cursor }, change] = useUrlState(PARAMETERS);
  const rests = useConnection() === "resting";
  const query = useQuery({
    ...operations(cursor),
    refetchInterval: ({ state }) => (state.data?.items.some(isOpen) && !rests ? EVERY : false),
  });
  return (
    <Page title="Operations">
      <Panel title="Changes of many dead letters">
        <Loaded query={query}>
          {(page) => (
            <List
              page={page}
              scope={query.isPlaceholderData ? "" : (cursor ?? "first")}
              busy={query.isPlaceholderData}
              onTurn={(to) => change({ cursor: to })}
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
  onTurn,
}: {
  page: Listed;
  scope: string;
  busy: boolean;
  onTurn(cursor: string): void;
}) {
  const { items, fresh, show } = useHeld(page.items, scope, idOf);
  const rows = useRows(
    "Operations",
    items.map(({ id }) => `/operations/${id}`),
  );
  if (items.length === 0)
    return (
      <Empty title="There have been no operations.">
        Requeueing more than 100 dead letters, all that a filter matches, or some carefully makes one. It is
        shown here with its progress, and stays for the record.
      </Empty>
    );
  return (
    <>
      {fresh > 0 && (
        <p className={styles.fresh}>
          <Button icon="up" onClick={show}>
            {plural(fresh, "new operation")}, show
          </Button>
        </p>
      )}
      <Table label="Operations" head={HEAD}>
        {items.map((one, index) => (
          <Row key={one.id} of={one} current={rows.current === index} />
        ))}
      </Table>
      <Pager shown={items.length} next={page.next} previous={page.previous} onTurn={onTurn} busy={busy} />
    </>
  );
}

const HEAD = ["Operation", "What", "State", "Progress", "Handled", "Failed again", "By", "Begun"];

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
        <Progress of={of} thin />
        <span className={styles.numbers}>
          {number(of.settled)} of {number(of.total)}
        </span>
      </td>
      <td>{of.results ? number(of.results.handled) : "—"}</td>
      <td>
        <DiedAgain of={of} />
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
