import type { Filters } from "~/api/dead-letters";
import { Empty } from "~/ui";
import { isNarrowed } from "../parameters";

/** Why a list is empty, and what that means. */
export function Nothing({ filters }: { filters: Filters }) {
  if (isNarrowed(filters)) {
    return (
      <Empty title="Nothing matches the filter.">
        Take one of the filters away, or look under another status.
      </Empty>
    );
  }
  switch (filters.status) {
    case "open":
      return (
        <Empty title="There are no open dead letters.">
          Nothing has failed for good, or somebody has decided about all that did.
        </Empty>
      );
    case "discarded":
      return (
        <Empty title="Nothing is discarded.">
          What you discard stays here, out of the way, until it is restored or deleted for good.
        </Empty>
      );
    case "requeued":
      return (
        <Empty title="Nothing has been requeued.">
          What was sent again stays here, so that you see what became of it.
        </Empty>
      );
    default:
      return <Empty title="No message has ever failed for good here." />;
  }
}
