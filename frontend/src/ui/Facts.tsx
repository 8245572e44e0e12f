import { Fragment, type ReactNode } from "react";
import styles from "./Facts.module.css";

/** A list of names and values. Entries without a value are omitted. */
export function Facts({ of }: { of: readonly (readonly [string, ReactNode])[] }) {
  const present = of.filter(
    ([, value]) => value !== null && value !== undefined && value !== false && value !== "",
  );
  return (
    <dl className={styles.facts}>
      {present.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
