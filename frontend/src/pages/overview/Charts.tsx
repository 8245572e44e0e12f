import { useMemo } from "react";
import { perSecond, type Statistics, useStatistics } from "~/api/statistics";
import { number, rate, span } from "~/lib/format";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/overview";
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
import styles from "./Overview.module.css";

/** What has happened, over the time in the address. */
export function Charts() {
  const [values, change] = useUrlState(rangeParameters);
  const range = rangeOf(values);
  const query = useStatistics(periodOf(range));
  const zoom = (from: number, to: number) => change(valuesOf(brushed(from, to, Date.now() / 1000)));
  return (
    <section className={styles.history} aria-label={texts.overTime}>
      <header className={styles.historyHead}>
        <span className="quiet">{texts.overTime}</span>
        <TimeRange range={range} onChoose={(chosen) => change(valuesOf(chosen))} />
      </header>
      <Loaded query={query} loading={<Loading lines={6} />}>
        {(statistics) => (
          <div className={styles.charts}>
            <Panel title={texts.backlogChart}>
              <BacklogChart statistics={statistics} onZoom={zoom} />
            </Panel>
            <Panel title={texts.throughputChart}>
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
        name: texts.backlog,
        meaning: texts.backlogMeaning,
        values: backlog,
        colour: 1,
        mark: "none",
        filled: true,
        whole: true,
        format: number,
      },
      {
        name: texts.oldestAge,
        meaning: texts.oldestAgeMeaning,
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
      label={texts.backlogLabel}
      steps={statistics}
      lines={lines}
      onBrush={onZoom}
      empty={texts.backlogEmpty}
      gaps={texts.backlogGaps}
      note={statistics.stepReason && texts.longerSteps(statistics.stepReason)}
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
        name: texts.incoming,
        meaning: texts.inMeaning,
        values: perSecond(created, statistics),
        colour: 1,
        mark: "none",
        filled: true,
      },
      {
        ...line,
        name: texts.outgoing,
        meaning: texts.outMeaning,
        values: perSecond(sent, statistics),
        colour: 2,
        mark: "circle",
      },
      {
        ...line,
        name: texts.handled,
        meaning: texts.handledMeaning,
        values: perSecond(processed, statistics),
        colour: 4,
        mark: "square",
      },
      {
        ...line,
        name: texts.deadLettered,
        meaning: texts.deadLetteredMeaning,
        values: perSecond(dead, statistics),
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
      onBrush={onZoom}
      empty={texts.throughputEmpty}
      gaps={texts.throughputGaps}
    />
  );
}
