import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "~/api/live";
import { FAILURES_FIRST, type Item, itemsOf, type Operation } from "~/api/operations";
import { capitalize, number } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { maybe, text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/operations";
import {
  Badge,
  Button,
  Empty,
  type IconName,
  Loaded,
  Pager,
  Panel,
  State,
  stateStyle,
  Table,
  Tabs,
  type Tone,
} from "~/ui";
import styles from "./Items.module.css";

/** Delay until items older than the operation are read again, so that both show the same counts. Milliseconds. */
const REFETCH_AFTER = 1_000;

const PARAMETERS = { outcome: maybe(FAILURES_FIRST), cursor: text };

/** The dead letters of an operation by outcome, failures first. `at` is when the operation was read, in milliseconds. */
export function Items({ of, at }: { of: Operation; at: number }) {
  const [{ outcome, cursor }, change] = useUrlState(PARAMETERS);
  const isPaused = useConnection() === "idle";
  const query = useQuery({
    ...itemsOf(of.id, outcome, cursor),
    refetchInterval: ({ state }) => (state.dataUpdatedAt < at && !isPaused ? REFETCH_AFTER : false),
  });
  const shown = FAILURES_FIRST.filter((one) => one === outcome || (of.counts[one] ?? 0) > 0);
  const tabs = [
    { value: "all" as const, label: texts.all, count: number(of.item_count) },
    ...shown.map((one) => ({
      value: one,
      label: capitalize(stateStyle(one).label),
      count: number(of.counts[one] ?? 0),
    })),
  ];
  const scope = query.isPlaceholderData ? "" : `${outcome} ${cursor}`;
  return (
    <Panel title={texts.items}>
      <Tabs
        label={texts.outcomesFilter}
        tabs={tabs}
        value={outcome ?? "all"}
        onChoose={(to) => change({ outcome: to === "all" ? undefined : to, cursor: undefined })}
      >
        <Loaded query={query}>
          {({ items, next, previous }) => (
            <>
              <ItemTable items={items} scope={scope} outcome={outcome} />
              <Pager
                order="position"
                shown={items.length}
                next={next}
                previous={previous}
                busy={query.isPlaceholderData}
                onPageChange={(to) => change({ cursor: to })}
              />
            </>
          )}
        </Loaded>
      </Tabs>
    </Panel>
  );
}

function ItemTable({
  items: latest,
  scope,
  outcome,
}: {
  items: readonly Item[];
  scope: string;
  outcome?: string | undefined;
}) {
  const { items, gone, fresh, show } = useStableList(latest, scope, idOf);
  const changed = Math.max(fresh, gone.size);
  if (items.length === 0 && fresh === 0)
    return (
      <Empty title={outcome ? texts.noneWithOutcome(stateStyle(outcome).label) : texts.noItems}>
        {outcome ? texts.otherOutcomes : texts.noItemsHint}
      </Empty>
    );
  return (
    <>
      {changed > 0 && (
        <p className={styles.fresh}>
          <Button icon="operations" onClick={show}>
            {texts.changedRows(changed)}
          </Button>
        </p>
      )}
      <Table label={texts.items} head={[texts.deadLetter, texts.outcome, texts.result, texts.reason]}>
        {items.map(({ id, outcome: itemOutcome, reason, result, failed_attempt_count }) => (
          <tr key={id}>
            <th scope="row">
              <Link href={`/dead-letters/${encodeURIComponent(id)}?status=any`}>{id}</Link>
            </th>
            <td>
              <State of={itemOutcome} />
            </td>
            <td>{result === null ? "—" : <Result result={result} failed={failed_attempt_count} />}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Result of a requeued message. */
function Result({ result, failed }: { result: NonNullable<Item["result"]>; failed: number }) {
  const { label, tone, icon } = RESULTS[result];
  return (
    <>
      <Badge tone={tone} icon={icon}>
        {label}
      </Badge>
      {failed > 0 && texts.afterFailures(failed)}
    </>
  );
}

const RESULTS: Record<NonNullable<Item["result"]>, { label: string; tone: Tone; icon: IconName }> = {
  waiting: { label: texts.waitingResult, tone: "neutral", icon: "clock" },
  retrying: { label: texts.retryingResult, tone: "warn", icon: "operations" },
  handled: { label: texts.handledResult, tone: "good", icon: "check" },
  failed_again: { label: texts.failedAgainResult, tone: "bad", icon: "dead" },
  unknown: { label: texts.unknownResult, tone: "neutral", icon: "info" },
};

function idOf({ id }: Item): string {
  return id;
}
