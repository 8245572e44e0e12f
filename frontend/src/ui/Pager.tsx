import * as texts from "~/texts/ui";
import { Button } from "./Button";
import styles from "./Pager.module.css";

const BY_TIME = {
  before: texts.newer,
  first: texts.noNewer,
  after: texts.older,
  last: texts.noOlder,
};
const BY_PLACE = {
  before: texts.previous,
  first: texts.firstPage,
  after: texts.next,
  last: texts.lastPage,
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
    <nav className={styles.pager} aria-label={texts.listPages}>
      <Button
        icon="left"
        busy={busy}
        whyNot={previous ? undefined : words.first}
        onClick={() => previous && onTurn(previous)}
      >
        {words.before}
      </Button>
      <span className={styles.shown}>{texts.onThisPage(shown)}</span>
      <Button busy={busy} whyNot={next ? undefined : words.last} onClick={() => next && onTurn(next)}>
        {words.after}
      </Button>
    </nav>
  );
}
