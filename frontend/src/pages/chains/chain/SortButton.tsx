import { Icon } from "~/ui";
import type { Order } from "./ChainTable";
import styles from "./ChainTable.module.css";
import type { SortBy } from "./lines";

/** A column's name, which sorts by it; once more, the other way round. */
export function SortButton({ column, words, order }: { column: SortBy; words: string; order: Order }) {
  const here = order.by === column;
  const how = order.down ? "descending" : "ascending";
  return (
    <button
      type="button"
      className={styles.sort}
      onClick={() => order.change({ sort: column, down: here && !order.down, page: undefined })}
    >
      {words}
      {here && <Icon name={order.down ? "down" : "up"} />}
      <span className="unseen">{here ? `, sorted, ${how}` : ", sort by this"}</span>
    </button>
  );
}
