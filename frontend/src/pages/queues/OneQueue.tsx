import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useComponents } from "~/api/components";
import { deadLetterGroups } from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import type { Pause } from "~/api/pauses";
import { failureOf } from "~/api/problems";
import { type HandlingTimes, type QueueDetail, useQueue } from "~/api/queues";
import { useWhyNot } from "~/api/session";
import { perSecond, type Statistics, useStatistics } from "~/api/statistics";
import { age, count, number, rate, span } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import { useUrlState } from "~/lib/url-state";
import { PauseDialog } from "~/pages/components/PauseDialog";
import { ResumeDialog } from "~/pages/components/ResumeDialog";
import * as texts from "~/texts/queues";
import { Ago, Badge, Button, Empty, Facts, Loaded, Loading, Page, Panel, State, Table } from "~/ui";
import {
  brushed,
  type Line,
  type Marker,
  periodOf,
  rangeOf,
  rangeParameters,
  Sparkline,
  TimeChart,
  TimeRange,
  valuesOf,
} from "~/ui/charts";
import styles from "./Queues.module.css";
import { living, stateOf } from "./state";

/** One queue: how it is now, how it was, who consumes it, and what failed. */
export function OneQueue({ name }: { name: string }) {
  const query = useQueue(name);
  const whyNot = useWhyNot("pause");
  const components = useComponents();
  const [pausing, setPausing] = useState(false);
  const [resuming, setResuming] = useState<Pause>();
  const pause = query.data?.pauses.find(({ scope }) => scope === "queue");
  const change = () => (pause ? setResuming(pause) : setPausing(true));
  useShortcuts(texts.title, [
    { keys: "p", label: pause ? texts.resume : texts.pause, run: () => !whyNot && query.data && change() },
  ]);
  if (query.error && failureOf(query.error).status === 404) {
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
            <History of={queue} />
            <Workers of={queue} />
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

function History({ of: queue }: { of: QueueDetail }) {
  const [values, change] = useUrlState(rangeParameters);
  const range = rangeOf(values);
  const query = useStatistics(periodOf(range), queue.name);
  const zoom = (from: number, to: number) => change(valuesOf(brushed(from, to, Date.now() / 1000)));
  const starts = queue.worker_starts;
  const markers = useMemo(() => versionsOf(starts), [starts]);
  return (
    <section className={styles.history} aria-label={texts.overTime}>
      <header className={styles.historyHead}>
        <span className="quiet">{texts.overTime}</span>
        <TimeRange range={range} onChoose={(chosen) => change(valuesOf(chosen))} />
      </header>
      <Loaded query={query} loading={<Loading lines={6} />}>
        {(statistics) => (
          <div className={styles.summary}>
            <Panel title={texts.throughput}>
              <Throughput statistics={statistics} markers={markers} onZoom={zoom} />
            </Panel>
            <Panel title={texts.timesChart}>
              <Times statistics={statistics} markers={markers} onZoom={zoom} />
            </Panel>
          </div>
        )}
      </Loaded>
    </section>
  );
}

/** When each version was started first. */
export function versionsOf(starts: QueueDetail["worker_starts"]): readonly Marker[] {
  const first = new Map<string, number>();
  for (const { version, started_at } of starts) {
    const at = Date.parse(started_at) / 1000;
    first.set(version, Math.min(at, first.get(version) ?? at));
  }
  return [...first].map(([version, at]) => ({ at, name: texts.started(version) }));
}

interface ChartProps {
  statistics: Statistics;
  markers: readonly Marker[];
  onZoom(from: number, to: number): void;
}

function Throughput({ statistics, markers, onZoom }: ChartProps) {
  const lines = useMemo((): Line[] => {
    const line = (name: string, meaning: string, values: Statistics["processed"]) => ({
      name,
      meaning,
      values: perSecond(values, statistics),
      format: rate,
    });
    return [
      {
        ...line(texts.handled, texts.handledMeaning, statistics.processed),
        colour: 1,
        mark: "none",
        filled: true,
      },
      { ...line(texts.failed, texts.failedMeaning, statistics.failed), colour: 3, mark: "diamond" },
      {
        ...line(texts.deadLettered, texts.deadLetteredMeaning, statistics.dead),
        colour: 5,
        mark: "triangle",
      },
    ];
  }, [statistics]);
  return (
    <TimeChart
      label={texts.throughputLabel}
      steps={statistics}
      lines={lines}
      markers={markers}
      onBrush={onZoom}
      empty={texts.noData}
      gaps={texts.gaps}
    />
  );
}

function Times({ statistics, markers, onZoom }: ChartProps) {
  const lines = useMemo((): Line[] => {
    const { p50, p95, p99 } = statistics.handling;
    return [
      {
        name: texts.p50Name,
        meaning: texts.timesMeaning("50 %"),
        values: p50,
        colour: 1,
        mark: "none",
        format: span,
      },
      {
        name: texts.p95Name,
        meaning: texts.timesMeaning("95 %"),
        values: p95,
        colour: 3,
        mark: "circle",
        format: span,
      },
      {
        name: texts.p99Name,
        meaning: texts.timesMeaning("99 %"),
        values: p99,
        colour: 5,
        mark: "triangle",
        format: span,
      },
    ];
  }, [statistics]);
  return (
    <TimeChart
      label={texts.timesLabel}
      steps={statistics}
      lines={lines}
      markers={markers}
      onBrush={onZoom}
      empty={texts.noData}
      gaps={texts.gaps}
    />
  );
}

function Workers({ of: queue }: { of: QueueDetail }) {
  return (
    <Panel title={texts.workers} flush={queue.consumers.length > 0} aside={number(living(queue).length)}>
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
              <td>{one.version}</td>
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
                  <Link href={`/dead-letters?${new URLSearchParams({ group_id: group.id, queue: name })}`}>
                    {group.title}
                  </Link>
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
