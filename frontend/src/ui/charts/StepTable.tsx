import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { Table } from "../Table";
import type { Line, Steps } from "./lines";
import styles from "./TimeChart.module.css";
import { stepName } from "./times";
import { valueAt } from "./values";

/** A chart's values as a table, newest first. */
export function StepTable({ label, steps, lines }: { label: string; steps: Steps; lines: readonly Line[] }) {
  const { zone } = usePreferences();
  const indexes = steps.startsAt
    .map((_, index) => index)
    .filter((index) => lines.some(({ values }) => values[index] != null))
    .reverse();
  return (
    <div className={styles.table}>
      <Table label={texts.asTable(label)} head={[texts.time, ...lines.map(({ name }) => name)]}>
        {indexes.map((index) => (
          <tr key={steps.startsAt[index]}>
            <th scope="row">
              {stepName(steps, index, zone)}
              {!steps.complete[index] && texts.incomplete}
            </th>
            {lines.map((line) => (
              <td key={line.name}>{valueAt(line, index)}</td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}
