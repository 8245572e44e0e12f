// Texts for each action.

import type { Action, Selector } from "~/api/repairs";
import * as texts from "~/texts/repairs";
import type { ButtonProps } from "~/ui";

export interface ActionTexts {
  /** For buttons, and titles such as "Requeue 12 selected dead letters". */
  verb: string;
  /** For sentences such as "12 would be requeued". */
  participle: string;
  /** A sentence on what the action does, for one and for several. */
  meaning: readonly [one: string, several: string];
  look: NonNullable<ButtonProps["look"]>;
  /** The status that a dead letter needs for the action. */
  needed: string;
}

export const ACTION_TEXTS: Record<Action, ActionTexts> = {
  requeue: {
    verb: texts.requeue,
    participle: texts.requeued,
    meaning: [texts.requeueOne, texts.requeueMany],
    look: "primary",
    needed: texts.open,
  },
  discard: {
    verb: texts.discard,
    participle: texts.discarded,
    meaning: [texts.discardOne, texts.discardMany],
    look: "primary",
    needed: texts.open,
  },
  restore: {
    verb: texts.restore,
    participle: texts.restored,
    meaning: [texts.restoreOne, texts.restoreMany],
    look: "primary",
    needed: texts.discarded,
  },
  purge: {
    verb: texts.purge,
    participle: texts.purged,
    meaning: [texts.purgeOne, texts.purgeMany],
    look: "danger",
    needed: texts.discarded,
  },
};

/** Returns a sentence on what the action does to the selection. */
export function meaningOf(action: Action, selector: Selector): string {
  const [one, several] = ACTION_TEXTS[action].meaning;
  return "ids" in selector && selector.ids.length === 1 ? one : several;
}
