import { type ReactNode, useMemo } from "react";
import { type Statistics, trimEmptyStart, useStatistics } from "~/api/statistics";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/charts";
import { Loaded, Loading } from "../Loaded";
import { Panel } from "../Panel";
import { Moment } from "../Time";
import styles from "./History.module.css";
import type { Line, Marker } from "./lines";
import { periodOf, rangeFromBrush, rangeOf, rangeParameters, valuesOf } from "./range";
import { TimeChart } from "./TimeChart";
import { TimeRange } from "./TimeRange";

/** Definition of one chart: its lines and texts. */
export interface Chart {
  title: string;
  /** Accessible name. */
  label: string;
  /** Must be the same function on each render, because its result is memoized. */
  lines(statistics: Statistics): readonly Line[];
  empty: string;
  gaps: string;
  note?(statistics: Statistics): ReactNode;
}

interface HistoryProps {
  /** Shows only this queue. */
  queue?: string;
  charts: readonly Chart[];
  markers?: readonly Marker[];
}

/** Charts of the time range in the URL, starting where data begins. Brushing any chart changes the range of all. */
export function History({ queue, charts, markers }: HistoryProps) {
  const [values, change] = useUrlState(rangeParameters);
  const range = rangeOf(values);
  const query = useStatistics(periodOf(range), queue);
  const shown = useMemo(() => query.data && trimEmptyStart(query.data), [query.data]);
  const zoom = (from: number, to: number) => change(valuesOf(rangeFromBrush(from, to, Date.now() / 1000)));
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
      <Loaded query={query} loading={<Panels charts={charts} body={() => <Loading />} />}>
        {(statistics) => (
          <Panels
            charts={charts}
            body={(chart) => (
              <ChartView of={chart} statistics={shown ?? statistics} markers={markers} onBrush={zoom} />
            )}
          />
        )}
      </Loaded>
    </section>
  );
}

/** A panel for each chart. Loading, empty and drawn charts are equally high: what is below them stays in place. */
function Panels({ charts, body }: { charts: readonly Chart[]; body(chart: Chart): ReactNode }) {
  return (
    <div className={styles.charts}>
      {charts.map((chart) => (
        <Panel key={chart.title} title={chart.title}>
          <div className={styles.place}>{body(chart)}</div>
        </Panel>
      ))}
    </div>
  );
}

interface ChartViewProps {
  of: Chart;
  statistics: Statistics;
  markers: readonly Marker[] | undefined;
  onBrush(from: number, to: number): void;
}

function ChartView({
  of: { lines, label, empty, gaps, note },
  statistics,
  markers,
  onBrush,
}: ChartViewProps) {
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
