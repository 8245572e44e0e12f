import { number } from "~/lib/format";
import { Button } from "./Button";
import styles from "./Pager.module.css";

/** Steps through a list by its cursors. Newest first: the page after is older. */
export function Pager({
  shown,
  next,
  previous,
  onTurn,
  busy = false,
}: {
  shown: number;
  next: string | null;
  previous: string | null;
  onTurn(cursor: string): void;
  busy?: boolean;
}) {
  if (!next && !previous) return null;
  return (
    <nav className={styles.pager} aria-label="Pages">
      <Button
        icon="left"
        busy={busy}
        whyNot={previous ? undefined : "These are the newest."}
        onClick={() => previous && onTurn(previous)}
      >
        Newer
      </Button>
      <span className={styles.shown}>{number(shown)} on this page</span>
      <Button
        busy={busy}
        whyNot={next ? undefined : "There are no older ones."}
        onClick={() => next && onTurn(next)}
      >
        Older
      </Button>
    </nav>
  );
}
