import { Link } from "wouter";
import type { Operation } from "~/api/operations";
import { number } from "~/lib/format";
import * as texts from "~/texts/operations";
import { Icon } from "~/ui";
import styles from "./FailedAgain.module.css";

/** Number of dead letters that failed again, linked to the list of them. */
export function FailedAgain({ of: { id, failed_again_count: count } }: { of: Operation }) {
  if (count === 0) return <span className={styles.none}>0</span>;
  return (
    <Link href={`/operations/${id}?outcome=failed_again`} className={styles.dead ?? ""}>
      <Icon name="dead" />
      {number(count)}
      <span className="unseen"> {texts.failedAgain}</span>
    </Link>
  );
}
