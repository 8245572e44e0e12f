import { Link } from "wouter";
import { type Queue, type QueueList, useQueues } from "~/api/queues";
import { age, count, rate, span } from "~/lib/format";
import { choice, queueAddress, text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/queues";
import { AsOf, Badge, Empty, Loaded, Loading, Page, Table, Tabs, TextField } from "~/ui";
import { Sparkline } from "~/ui/charts";
import styles from "./Queues.module.css";
import { activeConsumers, found, hasProblem, sorted, stateOf } from "./state";

const KINDS = ["all", "troubled"] as const;
const NAMES = { all: texts.all, troubled: texts.withProblems };
const NUMBERS = [
  texts.waiting,
  texts.incoming,
  texts.outgoing,
  texts.failures,
  texts.handling,
  texts.consumers,
  texts.dead,
];
const PARAMETERS = { show: choice(KINDS, "all"), q: text };

/** All queues with their depth, rates, handling times and consumers. */
export function QueueTable() {
  const query = useQueues();
  return (
    <Page title={texts.title} aside={query.data && <AsOf at={query.dataUpdatedAt} />}>
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(queues) => <QueueTabs of={queues} />}
      </Loaded>
    </Page>
  );
}

function QueueTabs({ of }: { of: QueueList }) {
  const [{ show, q = "" }, change] = useUrlState(PARAMETERS);
  const withProblems = of.items.filter(hasProblem);
  const shown = sorted(found(show === "all" ? of.items : withProblems, q));
  if (of.items.length === 0) return <Empty title={texts.empty}>{texts.emptyHint}</Empty>;
  return (
    <Tabs
      label={texts.kinds}
      value={show}
      onChoose={(chosen) => change({ show: chosen })}
      tabs={KINDS.map((value) => ({
        value,
        label: NAMES[value],
        count: String(value === "all" ? of.items.length : withProblems.length),
      }))}
    >
      <div className={styles.search}>
        <TextField
          label={texts.search}
          type="search"
          value={q}
          onChange={(event) => change({ q: event.target.value || undefined }, { replace: true })}
        />
        {of.broker_error && <p className="quiet">{texts.depthsUnknown(of.broker_error.message)}</p>}
      </div>
      {shown.length === 0 ? (
        <Empty title={q ? texts.noneFound(q) : texts.noneWithProblems} />
      ) : (
        <div className={styles.list}>
          <Table
            folds
            label={texts.title}
            head={[
              texts.queue,
              texts.state,
              texts.waiting,
              texts.incoming,
              texts.outgoing,
              texts.failures,
              texts.handling,
              texts.lastHour,
              texts.consumers,
              texts.dead,
            ]}
            numbers={NUMBERS}
          >
            {shown.map((queue) => (
              <Row key={queue.name} of={queue} />
            ))}
          </Table>
        </div>
      )}
    </Tabs>
  );
}

function Row({ of }: { of: Queue }) {
  const { tone, words } = stateOf(of);
  const alive = activeConsumers(of).length;
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <Link href={queueAddress(of.name)} className={styles.name ?? ""}>
          {of.name}
        </Link>
        {of.handlers.map((handler) => (
          <span key={handler} className={styles.below}>
            {handler}
          </span>
        ))}
      </th>
      <td role="cell">
        <Badge tone={tone}>{words}</Badge>
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.waiting}>{of.queued ? count(of.queued) : texts.unknown}</Labelled>
        <Below of={depthsOf(of)} />
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.incoming}>{rate(of.per_second.incoming)}</Labelled>
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.outgoing}>{rate(of.per_second.outgoing)}</Labelled>
        <Below of={drainOf(of)} />
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.failures}>
          <Failed of={of} />
        </Labelled>
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.handling}>{span(of.handling_seconds.p95)}</Labelled>
        <Below
          of={
            of.handling_seconds_day_before.p95 === null
              ? []
              : [texts.dayBefore(span(of.handling_seconds_day_before.p95))]
          }
        />
      </td>
      <td role="cell">
        <Sparkline
          values={of.handled_counts.map((one, at) => one + (of.failed_counts[at] ?? 0))}
          label={hourOf(of)}
        />
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.consumers}>{texts.activeCount(alive)}</Labelled>
        <Below of={of.consumers.length > alive ? [texts.lost(of.consumers.length - alive)] : []} />
      </td>
      <td role="cell" data-number>
        <Labelled by={texts.dead}>
          {of.dead_letter_count && of.dead_letter_count.value > 0 ? (
            <Link href={`/dead-letters?${new URLSearchParams({ queue: of.name })}`}>
              {count(of.dead_letter_count)}
            </Link>
          ) : (
            "0"
          )}
        </Labelled>
      </td>
    </tr>
  );
}

/** A value with its own label, for narrow windows, where the table has no column headings. */
function Labelled({ by, children }: { by: string; children: React.ReactNode }) {
  return (
    <>
      <span data-head>{by} </span>
      {children}
    </>
  );
}

function Below({ of }: { of: readonly string[] }) {
  return of.map((words) => (
    <span key={words} className={styles.below}>
      {words}
    </span>
  ));
}

function Failed({ of: { failed_share: share } }: { of: Queue }) {
  if (share === null) return <span className="quiet">{texts.noAttempts}</span>;
  const words = share === 0 ? "0 %" : `${(share * 100).toFixed(1)} %`;
  return share > 0 ? <strong className={styles.failed}>{words}</strong> : words;
}

function depthsOf({ in_flight, retrying, oldest_age_seconds: oldest, queued }: Queue): readonly string[] {
  return [
    ...(in_flight?.value ? [texts.inFlight(count(in_flight))] : []),
    ...(retrying?.value ? [texts.retrying(count(retrying))] : []),
    ...(oldest !== null && queued?.value ? [texts.oldest(age(oldest))] : []),
  ];
}

function drainOf({ queued, per_second, drained_in_seconds: drained }: Queue): readonly string[] {
  if (!queued?.value) return [];
  if (drained !== null) return [texts.drained(age(drained))];
  const { incoming, outgoing } = per_second;
  return incoming !== null && outgoing !== null && incoming > outgoing ? [texts.growing] : [];
}

function hourOf({ handled_counts: handled, failed_counts: failed }: Queue): string {
  const sum = (counts: readonly number[]) => counts.reduce((one, other) => one + other, 0);
  return texts.attempts(sum(handled), sum(failed), (handled.at(-1) ?? 0) + (failed.at(-1) ?? 0));
}
