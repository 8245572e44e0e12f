import { useMemo } from "react";
import { type Entry, useAudit } from "~/api/audit";
import { useWhyNot } from "~/api/session";
import { count, plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { maybe, text, useUrlState } from "~/lib/url-state";
import { Button, Empty, Loaded, Loading, Page, Pager, ShownAge } from "~/ui";
import { type Filter, FilterBar } from "~/ui/filters";
import styles from "./Audit.module.css";
import { ACTIONS } from "./actions";
import { Entries } from "./Entries";

const PARAMETERS = {
  actor: text,
  action: text,
  outcome: maybe(["done", "failed", "denied"]),
  target: text,
  after: text,
  before: text,
  cursor: text,
  open: text,
};
const idOf = ({ id }: Entry) => id;

/** Who did what, or was not allowed to. */
export default function Audit() {
  const whyNot = useWhyNot("read_audit");
  if (whyNot === undefined) return <Readable />;
  return (
    <Page title="Audit">
      <Empty title="The audit is not for everybody.">{whyNot}</Empty>
    </Page>
  );
}

function Readable() {
  const state = useUrlState(PARAMETERS);
  const [{ cursor, open, ...filters }, change] = state;
  const query = useAudit(filters, cursor);
  const items = query.isPlaceholderData ? undefined : query.data?.items;
  const held = useHeld(items, JSON.stringify([filters, cursor]), idOf);
  const shown = query.isPlaceholderData ? (query.data?.items ?? []) : held.items;
  const known = useMemo(() => filtersFor(query.data?.items ?? []), [query.data]);
  const total = query.data?.total;
  return (
    <Page
      title="Audit"
      beside={
        query.data && (
          <span className={styles.quiet}>
            {total && `${count(total)} ${total.value === 1 ? "entry" : "entries"} · `}
            <ShownAge at={query.dataUpdatedAt} />
          </span>
        )
      }
    >
      <FilterBar
        label="Filter the audit"
        filters={known}
        state={state}
        also={{ cursor: undefined, open: undefined }}
      />
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(page) => (
          <>
            {held.fresh > 0 && !cursor && (
              <p>
                <Button icon="up" onClick={held.show}>
                  {plural(held.fresh, "new entry", "new entries")}, show
                </Button>
              </p>
            )}
            {shown.length === 0 ? (
              <Nothing filtered={Object.values(filters).some(Boolean)} />
            ) : (
              <Entries
                items={shown}
                open={open}
                onOpen={(id) => change({ open: id }, { replace: true })}
                onNarrow={(changes) => change({ ...changes, cursor: undefined, open: undefined })}
              />
            )}
            <Pager
              shown={shown.length}
              next={page.next}
              previous={page.previous}
              busy={query.isPlaceholderData}
              onTurn={(to) => change({ cursor: to, open: undefined })}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (!filtered) {
    return (
      <Empty title="Nobody has done anything yet.">
        Logins, repairs, pauses, what was revealed, what failed and what was denied are written down here.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing fits these filters.">
      Names and actions have to be given whole. Take a filter away to see more.
    </Empty>
  );
}

function filtersFor(items: readonly Entry[]): readonly Filter<keyof typeof PARAMETERS>[] {
  const some = (values: readonly string[]) => [...new Set(values)].filter(Boolean).sort();
  return [
    {
      kind: "text",
      name: "actor",
      label: "Who",
      suggestions: some(items.map(({ actor }) => actor)),
      hint: "The whole name.",
      first: true,
    },
    { kind: "text", name: "action", label: "Action", suggestions: ACTIONS, hint: "As in dlq.requeue." },
    {
      kind: "choice",
      name: "outcome",
      label: "Outcome",
      options: [
        ["done", "done"],
        ["failed", "failed"],
        ["denied", "denied"],
      ],
    },
    {
      kind: "text",
      name: "target",
      label: "Target",
      suggestions: some(items.map(({ target }) => target)),
      hint: "The whole target: 17, operation 3.",
    },
    { kind: "time", name: "after", label: "After" },
    { kind: "time", name: "before", label: "Before" },
  ];
}
