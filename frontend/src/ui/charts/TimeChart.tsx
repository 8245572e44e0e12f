import { lazy, type ReactNode, Suspense, useId, useMemo, useState } from "react";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { Button } from "../Button";
import { Empty } from "../Loaded";
import { Legend } from "./Legend";
import { hasGaps, hasNoData, type Line, latestKnownIndex, type Marker, type Steps } from "./lines";
import { StepTable } from "./StepTable";
import styles from "./TimeChart.module.css";
import { stepName } from "./times";
import { valueAt } from "./values";

const Plot = lazy(() => import("./Plot").then((loaded) => ({ default: loaded.Plot })));

export interface TimeChartProps {
  /** Accessible name. */
  label: string;
  steps: Steps;
  lines: readonly Line[];
  /** Events at one time, such as the start of a new version. */
  markers?: readonly Marker[];
  /** Explains why there is no data at all, and what to do. */
  empty: ReactNode;
  /** Explains gaps in the lines. */
  gaps: string;
  /** Note below the chart. */
  note?: ReactNode;
  onBrush(from: number, to: number): void;
}

const NONE: readonly Marker[] = [];

/** A line chart over time with values at the cursor, and a table of the same data. */
export function TimeChart({
  label,
  steps,
  lines,
  markers = NONE,
  empty,
  gaps,
  note,
  onBrush,
}: TimeChartProps) {
  const { zone } = usePreferences();
  const [pointed, setPointed] = useState<number | null>(null);
  const [showsTable, setShowsTable] = useState(false);
  const table = useId();
  const latest = useMemo(() => latestKnownIndex(lines, steps.complete), [lines, steps.complete]);
  if (hasNoData(lines)) return <Empty title={texts.noData}>{empty}</Empty>;
  const at = pointed !== null && pointed < steps.startsAt.length ? pointed : undefined;
  const describeStep = (index: number) =>
    [stepName(steps, index, zone), ...lines.map((line) => `${line.name} ${valueAt(line, index)}`)].join(", ");
  return (
    <figure className={styles.chart} aria-label={label}>
      <Legend steps={steps} lines={lines} at={at ?? latest} pointed={at !== undefined} />
      <div className={styles.place}>
        <Suspense fallback={<div className={styles.place} />}>
          <Plot {...{ label, steps, lines, markers, describeStep, at, onBrush }} onPoint={setPointed} />
        </Suspense>
      </div>
      <figcaption className={styles.foot}>
        <span>
          {texts.dashed}
          {hasGaps(lines, steps.complete) && ` ${gaps}`} {note}
        </span>
        <Button
          look="quiet"
          aria-expanded={showsTable}
          aria-controls={table}
          onClick={() => setShowsTable(!showsTable)}
        >
          {showsTable ? texts.hideTable : texts.showTable}
        </Button>
      </figcaption>
      <div id={table}>{showsTable && <StepTable label={label} steps={steps} lines={lines} />}</div>
    </figure>
  );
}
