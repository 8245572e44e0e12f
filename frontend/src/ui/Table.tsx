import { type ReactNode, useContext } from "react";
import { Outdated } from "./Loaded";
import styles from "./Table.module.css";

/**
 * A table that scrolls horizontally if it is too wide, and is dimmed while its rows are those of another filter or page. Rows and
 * cells are plain `tr`, `th`, `td`. In tables that `fold`, they need explicit roles, because some browsers drop the implicit ones
 * when CSS changes their display, and a cell that is unclear without its heading has it in an element with `data-head`, which is
 * shown only in cards.
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
  /** Right-aligned columns of numbers; their cells have `data-number`. */
  numbers?: readonly ReactNode[];
  /** In windows up to 720 pixels wide, shows each row as a card. */
  folds?: boolean;
  children: ReactNode;
}) {
  const isOutdated = useContext(Outdated);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
    <section className={styles.scroll} aria-label={label} aria-busy={isOutdated} tabIndex={0}>
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
