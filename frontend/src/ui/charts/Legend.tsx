import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/charts";
import { type Line, SHAPES, type Steps } from "./lines";
import styles from "./TimeChart.module.css";
import { stepName } from "./times";
import { valueAt } from "./values";

/** Legend with the values at the cursor, or at the latest complete step. */
export function Legend({
  steps,
  lines,
  at,
  pointed,
}: {
  steps: Steps;
  lines: readonly Line[];
  at: number | undefined;
  pointed: boolean;
}) {
  const { zone } = usePreferences();
  return (
    <dl className={styles.legend}>
      {lines.map((line) => (
        <div key={line.name} className={styles.entry} title={line.meaning}>
          <dt>
            <Swatch line={line} /> {line.name}
          </dt>
          <dd>{valueAt(line, at)}</dd>
        </div>
      ))}
      {at !== undefined && (
        <div className={styles.when}>
          <dt className="unseen">{texts.time}</dt>
          <dd className={styles.time}>
            {pointed ? "" : "latest: "}
            {stepName(steps, at, zone)}
          </dd>
        </div>
      )}
    </dl>
  );
}

function Swatch({ line: { colour, mark, filled } }: { line: Line }) {
  return (
    <svg
      viewBox="-12 -6 24 12"
      width="24"
      height="12"
      className={styles.swatch}
      data-colour={colour}
      aria-hidden="true"
    >
      {filled && <path d="M-12 0h24v6h-24z" className={styles.shade} />}
      <path d="M-12 0h24" />
      {mark !== "none" && <path d={SHAPES[mark]} strokeWidth="1.5" />}
    </svg>
  );
}
