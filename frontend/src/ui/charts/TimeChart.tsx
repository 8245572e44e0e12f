import { lazy, type ReactNode, Suspense, useId, useMemo, useState } from "react";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { Button } from "../Button";
import { Empty } from "../Loaded";
import { Legend } from "./Legend";
import { hasGaps, type Line, type Marker, newestKnown, nothingKnown, type Steps } from "./lines";
import { StepTable } from "./StepTable";
import styles from "./TimeChart.module.css";
import { stepName } from "./times";
import { valueAt } from "./values";

const Plot = lazy(() => import("./Plot").then((loaded) => ({ default: loaded.Plot })));

export interface TimeChartProps {
  /** What it shows, for those who do not see it. */
  label: string;
  steps: Steps;
  lines: readonly Line[];
  /** What happened at one time, such as the start of a new version. */
  markers?: readonly Marker[];
  /** What it means that nothing is known of the whole time, and what to do. */
  empty: ReactNode;
  /** What it means that some steps are not known. */
  gaps: string;
  /** What is told below the chart. */
  note?: ReactNode;
  onBrush(from: number, to: number): void;
}

const NONE: readonly Marker[] = [];

/** Lines over time with their values at the cursor, and the same as a table. */
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
  const [tabled, setTabled] = useState(false);
  const table = useId();
  const newest = useMemo(() => newestKnown(lines, steps.complete), [lines, steps.complete]);
  if (nothingKnown(lines)) return <Empty title={texts.noData}>{empty}</Empty>;
  const at = pointed !== null && pointed < steps.startsAt.length ? pointed : undefined;
  const words = (index: number) =>
    [stepName(steps, index, zone), ...lines.map((line) => `${line.name} ${valueAt(line, index)}`)].join(", ");
  return (
    <figure className={styles.chart} aria-label={label}>
      <Legend steps={steps} lines={lines} at={at ?? newest} pointed={at !== undefined} />
      <div className={styles.place}>
        <Suspense fallback={<div className={styles.place} />}>
          <Plot {...{ label, steps, lines, markers, words, at, onBrush }} onPoint={setPointed} />
        </Suspense>
      </div>
      <figcaption className={styles.foot}>
        <span>
          {texts.dashed}
          {hasGaps(lines, steps.complete) && ` ${gaps}`} {note}
        </span>
        <Button look="quiet" aria-expanded={tabled} aria-controls={table} onClick={() => setTabled(!tabled)}>
          {tabled ? texts.hideTable : texts.showTable}
        </Button>
      </figcaption>
      <div id={table}>{tabled && <StepTable label={label} steps={steps} lines={lines} />}</div>
    </figure>
  );
}
