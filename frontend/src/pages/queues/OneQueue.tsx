import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useComponents } from "~/api/components";
import { deadLetterGroups } from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import type { Pause } from "~/api/pauses";
import { toFailure } from "~/api/problems";
import { type HandlingTimes, type QueueDetail, useQueue } from "~/api/queues";
import { useWhyNot } from "~/api/session";
import { perSecond, type Statistics } from "~/api/statistics";
import { age, count, number, rate, span } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import { groupAddress } from "~/lib/url-state";
import { PauseDialog } from "~/pages/components/PauseDialog";
import { ResumeDialog } from "~/pages/components/ResumeDialog";
import * as texts from "~/texts/queues";
import { Ago, Badge, Button, Empty, Facts, Loaded, Loading, Page, Panel, State, Table } from "~/ui";
import { type Chart, depthLines, History, type Line, Sparkline } from "~/ui/charts";
import { Attempts } from "./Attempts";
import { Deliveries } from "./Deliveries";
import styles from "./Queues.module.css";
import { activeConsumers, stateOf, versionsOf } from "./state";

/** One queue: current state, history, workers, messages, attempts and failures. */
export function OneQueue({ name }: { name: string }) {
  const query = useQueue(name);
  const starts = query.data?.worker_starts;
  const markers = useMemo(() => versionsOf(starts ?? []), [starts]);
  const whyNot = useWhyNot("pause");
  const components = useComponents();
  const [pausing, setPausing] = useState(false);
  const [resuming, setResuming] = useState<Pause>();
  const pause = query.data?.pauses.find(({ scope }) => scope === "queue");
  const change = () => (pause ? setResuming(pause) : setPausing(true));
  useShortcuts(texts.title, [
    { keys: "p", label: pause ? texts.resume : texts.pause, run: () => !whyNot && query.data && change() },
  ]);
  if (query.error && toFailure(query.error).status === 404) {
    return (
      <Page title={name} tab={texts.tabTitle(name)} aside={<Link href="/queues">{texts.allQueues}</Link>}>
        <Empty title={texts.notThere}>{texts.notThereHint}</Empty>
      </Page>
    );
  }
  return (
    <Page
      title={name}
      tab={texts.tabTitle(name)}
      aside={
        <>
          {query.data && <Badge tone={stateOf(query.data).tone}>{stateOf(query.data).words}</Badge>}
          <Link href="/queues">{texts.allQueues}</Link>
        </>
      }
      actions={
        <Button icon={pause ? "play" : "pause"} whyNot={whyNot} onClick={change}>
          {pause ? texts.resume : texts.pause}
        </Button>
      }
    >
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(queue) => (
          <>
            <div className={styles.summary}>
              <Now of={queue} />
              <Problems of={queue} />
            </div>
            <History queue={queue.name} charts={CHARTS} markers={markers} />
            <Workers of={queue} />
            <Deliveries queue={queue.name} listable={queue.broker === "postgresql"} />
            <Attempts queue={queue.name} />
            <Failures of={queue} />
          </>
        )}
      </Loaded>
      {pausing && (
        <PauseDialog
          target={{ scope: "queue", name }}
          components={components.data?.items ?? []}
          onClose={() => setPausing(false)}
        />
      )}
      {resuming && <ResumeDialog pause={resuming} onClose={() => setResuming(undefined)} />}
    </Page>
  );
}

function Now({ of: queue }: { of: QueueDetail }) {
  const { per_second: rates, drained_in_seconds: drained, failed_share: failed } = queue;
  return (
    <Panel title={texts.now}>
      <div className={styles.columns}>
        <Facts
          of={[
            [texts.depth, queue.queued ? count(queue.queued) : texts.unknown],
            [texts.inFlightLabel, queue.in_flight && count(queue.in_flight)],
            [texts.retryingLabel, queue.retrying && count(queue.retrying)],
            [texts.oldestLabel, queue.oldest_age_seconds !== null && age(queue.oldest_age_seconds)],
            [texts.incoming, rate(rates.incoming)],
            [texts.outgoing, rate(rates.outgoing)],
            [
              texts.drainedLabel,
              queue.queued?.value ? (drained === null ? texts.never : age(drained)) : null,
            ],
          ]}
        />
        <Facts
          of={[
            [texts.handler, queue.handlers.join(", ")],
            [texts.bindings, queue.bindings.map(({ binding_key }) => binding_key).join(", ")],
            [texts.failedShare, failed === null ? texts.noAttempts : `${(failed * 100).toFixed(1)} %`],
            [texts.times, quantiles(queue.handling_seconds)],
            [texts.timesBefore, quantiles(queue.handling_seconds_day_before)],
          ]}
        />
      </div>
      <p className={styles.foot}>{texts.period}</p>
    </Panel>
  );
}

function quantiles({ p50, p95, p99 }: HandlingTimes): string {
  return p50 === null ? texts.noAttempts : texts.quantiles(span(p50), span(p95), span(p99));
}

function Problems({ of: { findings } }: { of: QueueDetail }) {
  if (findings.length === 0) return null;
  return (
    <Panel title={texts.problems}>
      <ul className={styles.problems}>
        {findings.map(({ code, severity, summary, hint, started_at: since }) => (
          <li key={code}>
            <span>
              <Badge tone={severity === "error" ? "bad" : "warn"}>{severity}</Badge>{" "}
              {summary.charAt(0).toUpperCase() + summary.slice(1)}
              {since && (
                <span className="quiet">
                  {" "}
                  {texts.since} <Ago at={since} />
                </span>
              )}
            </span>
            <span className="quiet">{hint}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const CHARTS: readonly Chart[] = [
  {
    title: texts.depthChart,
    label: texts.depthLabel,
    lines: depths,
    empty: texts.noDepth,
    gaps: texts.gaps,
  },
  {
    title: texts.throughput,
    label: texts.throughputLabel,
    lines: throughput,
    empty: texts.noData,
    gaps: texts.gaps,
  },
  { title: texts.timesChart, label: texts.timesLabel, lines: times, empty: texts.noData, gaps: texts.gaps },
];

function depths(statistics: Statistics): readonly Line[] {
  return depthLines(statistics, {
    depth: texts.depth,
    depthMeaning: texts.depthMeaning,
    age: texts.oldestLabel,
    ageMeaning: texts.oldestMeaning,
  });
}

function throughput(statistics: Statistics): readonly Line[] {
  const line = (name: string, meaning: string, values: Statistics["processed"]) => ({
    name,
    meaning,
    values: perSecond(values, statistics),
    format: rate,
  });
  const { processed, failed, dead } = statistics;
  return [
    { ...line(texts.handled, texts.handledMeaning, processed), colour: 1, mark: "none", filled: true },
    { ...line(texts.failed, texts.failedMeaning, failed), colour: 3, mark: "diamond" },
    { ...line(texts.deadLettered, texts.deadLetteredMeaning, dead), colour: 5, mark: "triangle" },
  ];
}

function times({ handling: { p50, p95, p99 } }: Statistics): readonly Line[] {
  const line = (name: string, share: string, values: Statistics["processed"]) => ({
    name,
    meaning: texts.timesMeaning(share),
    values,
    format: span,
  });
  return [
    { ...line(texts.p50Name, "50 %", p50), colour: 1, mark: "none" },
    { ...line(texts.p95Name, "95 %", p95), colour: 3, mark: "circle" },
    { ...line(texts.p99Name, "99 %", p99), colour: 5, mark: "triangle" },
  ];
}

function Workers({ of: queue }: { of: QueueDetail }) {
  return (
    <Panel
      title={texts.workers}
      flush={queue.consumers.length > 0}
      aside={number(activeConsumers(queue).length)}
    >
      {queue.consumers.length === 0 ? (
        <Empty title={texts.noWorkers}>{texts.noWorkersHint}</Empty>
      ) : (
        <Table
          label={texts.workersTable}
          head={[texts.worker, texts.status, texts.activity, texts.host, texts.version, texts.startedAt]}
        >
          {queue.consumers.map((one) => (
            <tr key={one.component_id}>
              <th scope="row">
                <Link href={`/components?open=${encodeURIComponent(one.component_id)}`}>{one.name}</Link>
              </th>
              <td>
                <State of={one.status} />
              </td>
              <td>{one.state.replaceAll("_", " ")}</td>
              <td>
                {one.host} <span className="quiet">{texts.process(one.process_id)}</span>
              </td>
              <td>{one.service_version ?? one.version}</td>
              <td>
                <Ago at={one.started_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  );
}

function Failures({ of: { name } }: { of: QueueDetail }) {
  const query = useQuery({
    ...deadLetterGroups({ queue: [name], status: "open" }, "fingerprint"),
    refetchInterval: useFallbackInterval(),
  });
  const search = (key: string) => new URLSearchParams({ [key]: name });
  return (
    <Panel
      title={texts.groups}
      flush
      aside={
        <span className={styles.links}>
          <Link href={`/dead-letters?${search("queue")}`}>{texts.allDeadLetters}</Link>
          <Link href={`/messages?${search("target_queue")}`}>{texts.outboxMessages}</Link>
        </span>
      }
    >
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={texts.noGroups} />
          ) : (
            <ul className={styles.groups}>
              {items.map((group) => (
                <li key={group.id}>
                  <Link href={groupAddress(group.id)}>{group.title}</Link>
                  <Sparkline values={group.hourly_counts} label={texts.openCount(number(group.open_count))} />
                  <span>{texts.openCount(number(group.open_count))}</span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
