import { Icon } from "~/ui";
import styles from "./Fold.module.css";

/** The sign before what can be unfolded; keys do it by the row, so it is for pointers alone. */
export function Fold({ unfolded }: { unfolded: boolean | undefined }) {
  return (
    <span className={styles.fold} data-fold={unfolded === undefined ? undefined : true} aria-hidden="true">
      {unfolded !== undefined && <Icon name={unfolded ? "down" : "right"} />}
    </span>
  );
}
