import type { Filters } from "~/api/dead-letters";
import * as texts from "~/texts/dead-letters";
import { Empty } from "~/ui";
import { isNarrowed } from "../parameters";

/** Explains why a list is empty. */
export function EmptyList({ filters }: { filters: Filters }) {
  if (isNarrowed(filters)) {
    return <Empty title={texts.noMatch}>{texts.noMatchHint}</Empty>;
  }
  switch (filters.status) {
    case "open":
      return <Empty title={texts.noneOpen}>{texts.noneOpenHint}</Empty>;
    case "discarded":
      return <Empty title={texts.noneDiscarded}>{texts.noneDiscardedHint}</Empty>;
    case "requeued":
      return <Empty title={texts.noneRequeued}>{texts.noneRequeuedHint}</Empty>;
    default:
      return <Empty title={texts.none} />;
  }
}
