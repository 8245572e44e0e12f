import { Fragment, type ReactNode } from "react";
import styles from "./Facts.module.css";

/** Names and values; what has no value is left out. */
export function Facts({ of }: { of: readonly (readonly [string, ReactNode])[] }) {
  const known = of.filter(
    ([, value]) => value !== null && value !== undefined && value !== false && value !== "",
  );
  return (
    <dl className={styles.facts}>
      {known.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
