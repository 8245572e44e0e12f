import { number } from "~/lib/format";
import { Button } from "./Button";
import styles from "./Pager.module.css";

const BY_TIME = {
  before: "Newer",
  first: "These are the newest.",
  after: "Older",
  last: "There are no older ones.",
};
const BY_PLACE = {
  before: "Previous",
  first: "This is the first page.",
  after: "Next",
  last: "This is the last page.",
};

/** Steps through a list by its cursors. Newest first: the page after is older; else `order` is by place. */
export function Pager({
  shown,
  next,
  previous,
  onTurn,
  busy = false,
  order = "time",
}: {
  shown: number;
  next: string | null;
  previous: string | null;
  onTurn(cursor: string): void;
  busy?: boolean;
  order?: "time" | "place";
}) {
  const words = order === "time" ? BY_TIME : BY_PLACE;
  if (!next && !previous) return null;
  return (
    <nav className={styles.pager} aria-label="Pages of the list">
      <Button
        icon="left"
        busy={busy}
        whyNot={previous ? undefined : words.first}
        onClick={() => previous && onTurn(previous)}
      >
        {words.before}
      </Button>
      <span className={styles.shown}>{number(shown)} on this page</span>
      <Button busy={busy} whyNot={next ? undefined : words.last} onClick={() => next && onTurn(next)}>
        {words.after}
      </Button>
    </nav>
  );
}
