import { Icon } from "~/ui";
import styles from "./Fold.module.css";

/** The expand icon of a row. For pointers only: keyboard users expand the row itself. */
export function Fold({ unfolded }: { unfolded: boolean | undefined }) {
  return (
    <span className={styles.fold} data-fold={unfolded === undefined ? undefined : true} aria-hidden="true">
      {unfolded !== undefined && <Icon name={unfolded ? "down" : "right"} />}
    </span>
  );
}
