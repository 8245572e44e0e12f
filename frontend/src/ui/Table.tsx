import type { ReactNode } from "react";
import styles from "./Table.module.css";

/**
 * A table that scrolls sideways by itself where it is wider than its place. Rows and cells are plain `tr`, `th`, `td`;
 * of one that `folds` in narrow windows they name their roles, for some browsers take them for rows and cells no longer.
 */
export function Table({
  label,
  head,
  numbers = [],
  folds = false,
  children,
}: {
  label: string;
  head: readonly ReactNode[];
  /** The columns of numbers, which stand below each other; their cells have `data-number`. */
  numbers?: readonly ReactNode[];
  /** Up to 720 pixels each row is a card, its first two cells side by side. */
  folds?: boolean;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table role="table" className={styles.table} data-folds={folds || undefined}>
        <thead role="rowgroup">
          <tr role="row">
            {head.map((cell, column) => (
              <th
                // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
                key={column}
                role="columnheader"
                scope="col"
                data-number={numbers.includes(cell) || undefined}
              >
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">{children}</tbody>
      </table>
    </section>
  );
}
