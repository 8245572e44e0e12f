// How each action is spoken of.

import type { Action, Selector } from "~/api/repairs";
import type { ButtonProps } from "~/ui";

export interface Words {
  /** On buttons, and in titles before what is meant. */
  verb: string;
  /** "12 would be requeued". */
  participle: string;
  /** What it does to one, and to several, in a sentence. */
  meaning: readonly [one: string, several: string];
  look: NonNullable<ButtonProps["look"]>;
  /** What those are not that were named and are not counted. */
  needed: string;
}

export const WORDS: Record<Action, Words> = {
  requeue: {
    verb: "Requeue",
    participle: "requeued",
    meaning: [
      "It is sent again, with its id, to the queue that it died in.",
      "They are sent again, with their ids, to the queue that each died in.",
    ],
    look: "primary",
    needed: "open any more",
  },
  discard: {
    verb: "Discard",
    participle: "discarded",
    meaning: [
      "It is put aside: it stays, is not counted as open, and can be restored.",
      "They are put aside: they stay, are not counted as open, and can be restored.",
    ],
    look: "primary",
    needed: "open any more",
  },
  restore: {
    verb: "Restore",
    participle: "restored",
    meaning: [
      "It is open again, as it was before it was discarded.",
      "They are open again, as they were before they were discarded.",
    ],
    look: "primary",
    needed: "discarded",
  },
  purge: {
    verb: "Delete for good",
    participle: "deleted for good",
    meaning: [
      "It is deleted with everything that is known of it. This cannot be undone.",
      "Those that were discarded are deleted with everything that is known of them. This cannot be undone.",
    ],
    look: "danger",
    needed: "discarded",
  },
};

/** What the action does to what is meant, in a sentence. */
export function meaningOf(action: Action, selector: Selector): string {
  const [one, several] = WORDS[action].meaning;
  return "ids" in selector && selector.ids.length === 1 ? one : several;
}
