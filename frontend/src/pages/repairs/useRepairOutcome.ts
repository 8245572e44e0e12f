// Shows the outcome of a repair.

import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { describeFailure } from "~/api/problems";
import type { RepairResult } from "~/api/repairs";
import * as texts from "~/texts/repairs";
import { announce } from "~/ui";
import { ACTION_TEXTS } from "./action-texts";
import { whyNewDryRun } from "./problems";
import type { RepairDialogProps } from "./types";

/** Shows the outcome on the operation's page, as an announcement, or in the dialog. */
export function useRepairOutcome(
  props: RepairDialogProps,
  setNotice: (why: string | undefined) => void,
  repeatDryRun: () => void,
) {
  const [, navigate] = useLocation();
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  const words = ACTION_TEXTS[props.action];
  return {
    onAnswer(answer: RepairResult) {
      const changed = changedIn(answer);
      announce(summary(answer, changed, words.participle), changed > 0 ? "good" : "bad", resultOf(answer));
      if (changed > 0) props.onDone?.();
      if (answer.kind === "operation") {
        props.onClose();
        if (shown.current) navigate(`/operations/${answer.operation.id}`);
      } else if (changed === 1 && answer.repaired.items.length === 1) props.onClose();
    },
    onFailure(thrown: Error) {
      if (!shown.current) {
        announce(`${words.verb} ${props.describe}: ${describeFailure(thrown)}`, "bad");
        return;
      }
      const why = whyNewDryRun(thrown);
      if (!why) return;
      setNotice(why);
      repeatDryRun();
    },
  };
}

/** Returns how many dead letters were changed, or will be by the operation. */
function changedIn(answer: RepairResult): number {
  if (answer.kind === "operation") return answer.operation.item_count;
  return answer.repaired.items.filter(({ outcome }) => !["refused", "skipped", "not_found"].includes(outcome))
    .length;
}

/** Returns the page that shows the outcome: the operation, the dead letter, or the list of the new status. */
function resultOf(answer: RepairResult): string | undefined {
  if (answer.kind === "operation") return `/operations/${answer.operation.id}`;
  const { action, items } = answer.repaired;
  if (action === "purge") return undefined;
  const [first] = items;
  const one = items.length === 1 && first ? `/${encodeURIComponent(first.id)}` : "";
  return `/dead-letters${one}?view=messages&status=${one ? "any" : STATUSES[action]}`;
}

const STATUSES = { requeue: "requeued", discard: "discarded", restore: "open" } as const;

function summary(answer: RepairResult, changed: number, participle: string): string {
  if (answer.kind === "operation") {
    return texts.operationStarted(answer.operation.id, changed);
  }
  return texts.summary(changed, answer.repaired.items.length, participle);
}
