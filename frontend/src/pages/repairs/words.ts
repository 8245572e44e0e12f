// How each action is spoken of.

import type { Action } from "~/api/repairs";
import type { ButtonProps } from "~/ui";

export interface Words {
  /** On buttons, and in titles before what is meant. */
  verb: string;
  /** "12 would be requeued". */
  participle: string;
  /** What it does to them, in a sentence. */
  meaning: string;
  look: NonNullable<ButtonProps["look"]>;
  /** Why some of those that were named are not counted. */
  skipped: string;
}

export const WORDS: Record<Action, Words> = {
  requeue: {
    verb: "Requeue",
    participle: "requeued",
    meaning: "They are sent again, with their ids, to the queue that each died in.",
    look: "primary",
    skipped: "not open any more, or gone",
  },
  discard: {
    verb: "Discard",
    participle: "discarded",
    meaning: "They are put aside: they stay, are not counted as open, and can be restored.",
    look: "primary",
    skipped: "not open any more, or gone",
  },
  restore: {
    verb: "Restore",
    participle: "restored",
    meaning: "They are open again, as they were before they were discarded.",
    look: "primary",
    skipped: "not discarded, or gone",
  },
  purge: {
    verb: "Delete for good",
    participle: "deleted for good",
    meaning:
      "Those that were discarded are deleted with everything that is known of them. This cannot be undone.",
    look: "danger",
    skipped: "not discarded, or gone already",
  },
};
