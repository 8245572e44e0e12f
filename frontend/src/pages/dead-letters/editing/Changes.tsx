import { diffLines } from "diff";
import { useMemo } from "react";
import * as texts from "~/texts/editing";
import styles from "./Changes.module.css";
import { type ChangedLine, linesOf } from "./diff";

/** A line-by-line diff of two texts. Long runs of unchanged lines are omitted. */
export function Changes({ title, before, after }: { title: string; before: string; after: string }) {
  const lines = useMemo(() => linesOf(diffLines(before, after)), [before, after]);
  if (before === after) return <p className={styles.same}>{texts.unchanged(title)}</p>;
  return (
    <section>
      <h3>{title}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content has to be reachable by keyboard */}
      <div className={styles.scroll} tabIndex={0}>
        <table className={styles.changes} aria-label={texts.changesOf(title.toLowerCase())}>
          <tbody>
            {lines.map((line, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines never move
              <Line key={index} line={line} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const SIGNS = { added: "+", removed: "−", same: " " };

function Line({ line }: { line: ChangedLine }) {
  if (line.kind === "omitted") {
    return (
      <tr className={styles.out}>
        <td colSpan={4}>{texts.sameLines(line.count)}</td>
      </tr>
    );
  }
  return (
    <tr data-kind={line.kind}>
      <td className={styles.number}>{line.before}</td>
      <td className={styles.number}>{line.after}</td>
      <td className={styles.sign}>
        <span aria-hidden="true">{SIGNS[line.kind]}</span>
        <span className="unseen">{texts.changeKinds[line.kind]}</span>
      </td>
      <td>
        <code>{line.text}</code>
      </td>
    </tr>
  );
}
