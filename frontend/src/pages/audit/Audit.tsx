import { useMemo } from "react";
import { type Entry, useAudit } from "~/api/audit";
import { useWhyNot } from "~/api/session";
import { count } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { maybe, text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/audit";
import { AsOf, Button, Empty, Loaded, Loading, Page, Pager } from "~/ui";
import { Export } from "~/ui/Export";
import { type Filter, FilterBar } from "~/ui/filters";
import styles from "./Audit.module.css";
import { ACTIONS } from "./actions";
import { Entries } from "./Entries";

const PARAMETERS = {
  actor: text,
  action: text,
  outcome: maybe(["done", "failed", "denied"]),
  target: text,
  created_after: text,
  created_before: text,
  cursor: text,
  open: text,
};
const idOf = ({ id }: Entry) => id;

/** The audit log, or why the user cannot read it. */
export default function Audit() {
  const whyNot = useWhyNot("read_audit");
  if (whyNot === undefined) return <AuditLog />;
  return (
    <Page title={texts.title}>
      <Empty title={texts.forbidden}>{whyNot}</Empty>
    </Page>
  );
}

function AuditLog() {
  const state = useUrlState(PARAMETERS);
  const [{ cursor, open, ...filters }, change] = state;
  const query = useAudit(filters, cursor);
  const items = query.isPlaceholderData ? undefined : query.data?.items;
  const stable = useStableList(items, JSON.stringify([filters, cursor]), idOf);
  const shown = query.isPlaceholderData ? (query.data?.items ?? []) : stable.items;
  const filterFields = useMemo(() => filtersFor(query.data?.items ?? []), [query.data]);
  const total = query.data?.total;
  return (
    <Page
      title={texts.title}
      aside={
        query.data && (
          <span className={styles.quiet}>
            {total && `${texts.entries(count(total), total.value)} · `}
            <AsOf at={query.dataUpdatedAt} />
          </span>
        )
      }
      actions={<Export list="audit" filters={filters} />}
    >
      <FilterBar
        label={texts.filter}
        filters={filterFields}
        state={state}
        extraChanges={{ cursor: undefined, open: undefined }}
      />
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(page) => (
          <>
            {stable.fresh > 0 && !cursor && (
              <p>
                <Button icon="up" onClick={stable.show}>
                  {texts.fresh(stable.fresh)}
                </Button>
              </p>
            )}
            {shown.length === 0 ? (
              <EmptyLog filtered={Object.values(filters).some(Boolean)} />
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
              onPageChange={(to) => change({ cursor: to, open: undefined })}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function EmptyLog({ filtered }: { filtered: boolean }) {
  if (!filtered) {
    return <Empty title={texts.empty}>{texts.emptyHint}</Empty>;
  }
  return <Empty title={texts.noMatch}>{texts.noMatchHint}</Empty>;
}

function filtersFor(items: readonly Entry[]): readonly Filter<keyof typeof PARAMETERS>[] {
  const distinct = (values: readonly string[]) => [...new Set(values)].filter(Boolean).sort();
  return [
    {
      kind: "text",
      name: "actor",
      label: texts.actor,
      suggestions: distinct(items.map(({ actor }) => actor)),
      hint: texts.actorHint,
      first: true,
    },
    { kind: "text", name: "action", label: texts.action, suggestions: ACTIONS, hint: texts.actionHint },
    {
      kind: "choice",
      name: "outcome",
      label: texts.outcome,
      options: [
        ["done", "done"],
        ["failed", "failed"],
        ["denied", "denied"],
      ],
    },
    {
      kind: "text",
      name: "target",
      label: texts.target,
      suggestions: distinct(items.map(({ target }) => target)),
      hint: texts.targetHint,
    },
    { kind: "time", name: "created_after", label: texts.after },
    { kind: "time", name: "created_before", label: texts.before },
  ];
}
