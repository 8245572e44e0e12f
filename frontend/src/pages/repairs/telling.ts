// What came of a repair, told to whoever still looks.

import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { inOneLine } from "~/api/problems";
import type { Answer } from "~/api/repairs";
import { number, plural } from "~/lib/format";
import { announce } from "~/ui";
import type { RepairDialogProps } from "./index";
import { whyAgain } from "./troubles";
import { WORDS } from "./words";

/** Tells what came of it: on an operation's page, among the announcements, or in the dialog itself. */
export function useTelling(
  props: RepairDialogProps,
  setNotice: (why: string | undefined) => void,
  lookAgain: () => void,
) {
  const [, navigate] = useLocation();
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  const words = WORDS[props.action];
  return {
    onAnswer(answer: Answer) {
      announce(summary(answer, words.participle));
      props.onDone?.();
      if (answer.at === "length") {
        props.onClose();
        if (shown.current) navigate(`/operations/${answer.operation.id}`);
      } else if (isPlain(answer)) props.onClose();
    },
    onFailure(thrown: Error) {
      if (!shown.current) {
        announce(`${words.verb} ${props.describe}: ${inOneLine(thrown)}`, "bad");
        return;
      }
      const why = whyAgain(thrown);
      if (!why) return;
      setNotice(why);
      lookAgain();
    },
  };
}

/** One dead letter with which everything went well needs no list. */
function isPlain(answer: Answer): boolean {
  if (answer.at !== "once") return false;
  const { items, counts } = answer.repaired;
  const bad = ["refused", "skipped", "not-found"];
  return items.length === 1 && !Object.keys(counts).some((outcome) => bad.includes(outcome));
}

function summary(answer: Answer, participle: string): string {
  if (answer.at === "length") {
    const { id, total } = answer.operation;
    return `Operation ${id} has begun with ${plural(total, "dead letter")}.`;
  }
  const { counts, items } = answer.repaired;
  const done = Object.entries(counts)
    .filter(([outcome]) => !["refused", "skipped", "not-found"].includes(outcome))
    .reduce((sum, [, count]) => sum + count, 0);
  return `${number(done)} of ${plural(items.length, "dead letter")} ${done === 1 ? "was" : "were"} ${participle}.`;
}
