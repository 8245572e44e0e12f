import type { ReactNode } from "react";
import styles from "./Table.module.css";

/**
 * A table that scrolls sideways by itself where it is wider than its place. Rows and cells are plain `tr`, `th`, `td`.
 * Where a page lays them out anew for narrow windows, they name their roles: browsers forget that they are rows and cells.
 */
export function Table({
  label,
  head,
  children,
}: {
  label: string;
  head: readonly ReactNode[];
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table role="table" className={styles.table}>
        <thead role="rowgroup">
          <tr role="row">
            {head.map((cell, column) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
              <th key={column} role="columnheader" scope="col">
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
