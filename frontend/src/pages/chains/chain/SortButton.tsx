import * as texts from "~/texts/chains";
import { Icon } from "~/ui";
import styles from "./ChainTable.module.css";
import type { SortBy } from "./lines";

export interface Order {
  by: SortBy;
  down: boolean;
  page: number;
  change(changes: { sort?: SortBy; down?: boolean; page?: number | undefined }): void;
}

/** A column heading that sorts by the column. A second click reverses the order. */
export function SortButton({ column, words, order }: { column: SortBy; words: string; order: Order }) {
  const here = order.by === column;
  const how = order.down ? texts.descending : texts.ascending;
  return (
    <button
      type="button"
      className={styles.sort}
      onClick={() => order.change({ sort: column, down: here && !order.down, page: undefined })}
    >
      {words}
      {here && <Icon name={order.down ? "down" : "up"} />}
      <span className="unseen">{here ? texts.sorted(how) : texts.sortBy}</span>
    </button>
  );
}
