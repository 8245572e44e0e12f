import { type ReactNode, useMemo } from "react";
import { type Statistics, sinceFirstKnown, useStatistics } from "~/api/statistics";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/charts";
import { Loaded, Loading } from "../Loaded";
import { Panel } from "../Panel";
import { Moment } from "../Time";
import styles from "./History.module.css";
import type { Line, Marker } from "./lines";
import { brushed, periodOf, rangeOf, rangeParameters, valuesOf } from "./range";
import { TimeChart } from "./TimeChart";
import { TimeRange } from "./TimeRange";

/** One chart of a history: what it draws of the statistics, and its words. */
export interface Chart {
  title: string;
  /** What it shows, for those who do not see it. */
  label: string;
  /** Kept between renderings: the same function for the same chart. */
  lines(statistics: Statistics): readonly Line[];
  empty: string;
  gaps: string;
  note?(statistics: Statistics): ReactNode;
}

interface HistoryProps {
  /** Of this queue alone. */
  queue?: string;
  charts: readonly Chart[];
  markers?: readonly Marker[];
}

/** What happened over the time that the address names, from where the data begins; every chart shows it and changes it. */
export function History({ queue, charts, markers }: HistoryProps) {
  const [values, change] = useUrlState(rangeParameters);
  const range = rangeOf(values);
  const query = useStatistics(periodOf(range), queue);
  const shown = useMemo(() => query.data && sinceFirstKnown(query.data), [query.data]);
  const zoom = (from: number, to: number) => change(valuesOf(brushed(from, to, Date.now() / 1000)));
  return (
    <section className={styles.history} aria-label={texts.history}>
      <header className={styles.head}>
        <span className="quiet">
          {texts.history}
          {shown && shown !== query.data && (
            <>
              {texts.begins} <Moment at={new Date(shown.from * 1000).toISOString()} short />
            </>
          )}
        </span>
        <TimeRange range={range} onChoose={(chosen) => change(valuesOf(chosen))} />
      </header>
      <Loaded query={query} loading={<Loading lines={6} />}>
        {(statistics) => (
          <div className={styles.charts}>
            {charts.map((chart) => (
              <Panel key={chart.title} title={chart.title}>
                <Drawn of={chart} statistics={shown ?? statistics} markers={markers} onBrush={zoom} />
              </Panel>
            ))}
          </div>
        )}
      </Loaded>
    </section>
  );
}

interface DrawnProps {
  of: Chart;
  statistics: Statistics;
  markers: readonly Marker[] | undefined;
  onBrush(from: number, to: number): void;
}

function Drawn({ of: { lines, label, empty, gaps, note }, statistics, markers, onBrush }: DrawnProps) {
  return (
    <TimeChart
      {...{ label, empty, gaps, onBrush }}
      {...(markers && { markers })}
      steps={statistics}
      lines={useMemo(() => lines(statistics), [lines, statistics])}
      note={note?.(statistics)}
    />
  );
}
