import * as texts from "~/texts/ui";
import { Button } from "./Button";
import styles from "./Pager.module.css";

const BY_TIME = {
  before: texts.newer,
  first: texts.noNewer,
  after: texts.older,
  last: texts.noOlder,
};
const BY_POSITION = {
  before: texts.previous,
  first: texts.firstPage,
  after: texts.next,
  last: texts.lastPage,
};

/** Previous and next page of a list. The `order` determines the labels: newer and older, or previous and next. */
export function Pager({
  shown,
  next,
  previous,
  onPageChange,
  busy = false,
  order = "time",
}: {
  shown: number;
  next: string | null;
  previous: string | null;
  onPageChange(cursor: string): void;
  busy?: boolean;
  order?: "time" | "position";
}) {
  const labels = order === "time" ? BY_TIME : BY_POSITION;
  if (!next && !previous) return null;
  return (
    <nav className={styles.pager} aria-label={texts.listPages}>
      <Button
        icon="left"
        busy={busy}
        whyNot={previous ? undefined : labels.first}
        onClick={() => previous && onPageChange(previous)}
      >
        {labels.before}
      </Button>
      <span className={styles.shown}>{texts.onThisPage(shown)}</span>
      <Button busy={busy} whyNot={next ? undefined : labels.last} onClick={() => next && onPageChange(next)}>
        {labels.after}
      </Button>
    </nav>
  );
}
