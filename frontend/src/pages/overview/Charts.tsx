import { useMemo } from "react";
import { type Statistics, useStatistics } from "~/api/statistics";
import { number, rate, span } from "~/lib/format";
import { useUrlState } from "~/lib/url-state";
import { Loaded, Loading, Panel } from "~/ui";
import {
  brushed,
  type Line,
  periodOf,
  rangeOf,
  rangeParameters,
  TimeChart,
  TimeRange,
  valuesOf,
} from "~/ui/charts";
import { perSecond } from "./health";
import styles from "./Overview.module.css";

/** What has happened, over the time in the address. */
export function Charts() {
  const [values, change] = useUrlState(rangeParameters);
  const range = rangeOf(values);
  const query = useStatistics(periodOf(range));
  const zoom = (from: number, to: number) => change(valuesOf(brushed(from, to, Date.now() / 1000)));
  return (
    <section className={styles.history} aria-label="Over time">
      <header className={styles.historyHead}>
        <span className="quiet">Over time</span>
        <TimeRange range={range} onChoose={(chosen) => change(valuesOf(chosen))} />
      </header>
      <Loaded query={query} loading={<Loading lines={6} />}>
        {(statistics) => (
          <div className={styles.charts}>
            <Panel title="Backlog and its oldest age">
              <BacklogChart statistics={statistics} onZoom={zoom} />
            </Panel>
            <Panel title="Throughput">
              <ThroughputChart statistics={statistics} onZoom={zoom} />
            </Panel>
          </div>
        )}
      </Loaded>
    </section>
  );
}

interface ChartProps {
  statistics: Statistics;
  onZoom(from: number, to: number): void;
}

function BacklogChart({ statistics, onZoom }: ChartProps) {
  const lines = useMemo((): Line[] => {
    const { backlog, oldestAge } = statistics;
    return [
      {
        name: "Backlog",
        meaning: "The most unsent messages that a relay measured in the step",
        values: backlog,
        colour: 1,
        mark: "none",
        filled: true,
        whole: true,
        format: number,
      },
      {
        name: "Oldest age",
        meaning: "How long the oldest due message had waited at most",
        values: oldestAge,
        colour: 3,
        mark: "diamond",
        right: true,
        format: span,
      },
    ];
  }, [statistics]);
  return (
    <TimeChart
      label="Backlog and the age of its oldest message over time"
      steps={statistics}
      lines={lines}
      onBrush={onZoom}
      empty="No relay measured the backlog then. Lines begin as soon as one runs; statistics are kept when it stops."
      gaps="Gaps: no relay reported anything."
      note={statistics.widened && `Steps are longer because ${statistics.widened}.`}
    />
  );
}

function ThroughputChart({ statistics, onZoom }: ChartProps) {
  const lines = useMemo((): Line[] => {
    const { created, sent, processed, dead } = statistics;
    const line = { format: rate };
    return [
      {
        ...line,
        name: "In",
        meaning: "Created, per second",
        values: perSecond(created, statistics),
        colour: 1,
        mark: "none",
        filled: true,
      },
      {
        ...line,
        name: "Out",
        meaning: "Sent to the broker, per second",
        values: perSecond(sent, statistics),
        colour: 2,
        mark: "circle",
      },
      {
        ...line,
        name: "Handled",
        meaning: "Handled by workers, per second",
        values: perSecond(processed, statistics),
        colour: 4,
        mark: "square",
      },
      {
        ...line,
        name: "Died",
        meaning: "Became dead letters, per second",
        values: perSecond(dead, statistics),
        colour: 5,
        mark: "triangle",
      },
    ];
  }, [statistics]);
  return (
    <TimeChart
      label="Messages per second over time"
      steps={statistics}
      lines={lines}
      onBrush={onZoom}
      empty="Neither a relay nor a worker told anything then. Lines begin as soon as one runs; statistics are kept when it stops."
      gaps="Gaps: nothing was reported. Workers report only while they handle messages."
    />
  );
}
