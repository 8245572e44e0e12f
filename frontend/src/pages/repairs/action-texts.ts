// How each action is spoken of.

import type { Action, Selector } from "~/api/repairs";
import * as texts from "~/texts/repairs";
import type { ButtonProps } from "~/ui";

export interface ActionTexts {
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

/** What the action does to what is meant, in a sentence. */
export function meaningOf(action: Action, selector: Selector): string {
  const [one, several] = ACTION_TEXTS[action].meaning;
  return "ids" in selector && selector.ids.length === 1 ? one : several;
}
