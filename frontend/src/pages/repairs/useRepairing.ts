// What the dialog knows: what was typed, what the dry run found, what is under way, and why it cannot go on.

import { useState } from "react";
import { type Action, mayHaveBeenDone, type Selector, until, useDryRun, useRepair } from "~/api/repairs";
import { useWhyNot } from "~/api/session";
import { number } from "~/lib/format";
import type { RepairDialogProps } from "./index";
import {
  type Errors,
  errorsIn,
  goesCarefully,
  isOpenEnded,
  isTyped,
  mannerOf,
  type Options,
  UNTOUCHED,
  wantedOf,
} from "./options";
import { useTelling } from "./telling";
import { driftOf, errorsOf, TOO_OLD } from "./troubles";
import { useLifetime } from "./useLifetime";
import { useSettled } from "./useSettled";
import { WORDS } from "./words";

export type Repairing = ReturnType<typeof useRepairing>;

export function useRepairing(props: RepairDialogProps) {
  const { action } = props;
  /** Without what died since a dry run, where the number would not stand still otherwise. */
  const [pinned, setPinned] = useState<{ selector: Selector; at: string }>();
  const selector = pinned?.selector ?? props.selector;
  const [options, setOptions] = useState<Options>(UNTOUCHED);
  const [typed, setTyped] = useState("");
  const [notice, setNotice] = useState<string>();
  const first = {
    action,
    selector,
    destination: undefined,
    maxItems: undefined,
    force: false,
    edit: props.edit,
  };
  const { settled, isSettled } = useSettled(wantedOf({ ...props, selector }, options), first);
  const run = useDryRun(settled);
  const repair = useRepair(useTelling(props, setNotice, () => void run.refetch()));
  const mayNot = useWhyNot(action === "purge" ? "purge" : "repair");

  const lookAgain = (why?: string) => {
    setNotice(why);
    repair.reset();
    void run.refetch();
  };
  useLifetime(run.data, run.dataUpdatedAt, () => !repair.isPending && !isLost && lookAgain(TOO_OLD));

  const isCurrent = isSettled && !run.isFetching && run.data !== undefined && !run.error;
  const count = run.data?.count ?? 0;
  const careful = action === "requeue" && !props.edit && goesCarefully(options, selector, count);
  const errors: Errors = { ...errorsIn(options, action, careful), ...errorsOf(repair.error ?? run.error) };
  const isLost = repair.error !== null && mayHaveBeenDone(repair.error);
  const facts = { action, selector: settled.selector, errors, isCurrent, count, typed };
  const whyNot =
    mayNot ?? (isLost ? undefined : whyNotYet({ ...facts, refused: run.error, failed: repair.error }));

  const before =
    action === "requeue" || action === "discard" ? until(props.selector, run.data?.at) : undefined;

  return {
    ...{ options, typed, notice, run, repair, errors, count, careful, isCurrent, isLost, whyNot, pinned },
    /** Something was typed or chosen that is gone when the dialog closes. */
    isTouched: typed !== "" || options !== UNTOUCHED,
    setTyped,
    /** Leaves out what died since the dry run, where that can be. */
    leaveOutNew:
      before && run.data?.at
        ? () => {
            setPinned({ selector: before, at: run.data?.at ?? "" });
            repair.reset();
          }
        : undefined,
    lookAgain,
    change(changes: Partial<Options>) {
      setOptions({ ...options, ...changes });
      if (!repair.isIdle) repair.reset();
    },
    send() {
      if (whyNot || repair.isPending) return;
      setNotice(undefined);
      if (isLost && repair.variables) repair.mutate(repair.variables);
      else if (run.data) {
        repair.mutate({ wanted: settled, manner: mannerOf(options, careful), token: run.data.token });
      }
    },
  };
}

/** What has to happen first, as a sentence for the button. */
function whyNotYet(facts: {
  action: Action;
  selector: Selector;
  errors: Errors;
  isCurrent: boolean;
  count: number;
  typed: string;
  refused: unknown;
  failed: unknown;
}): string | undefined {
  const { action, selector, errors, isCurrent, count, typed } = facts;
  const [error] = Object.values(errors);
  if (error) return error;
  if (facts.refused) return "The dry run was refused.";
  if (!isCurrent) return "The dry run is under way.";
  if (driftOf(facts.failed)) return "Look again first: the number has changed.";
  if (count === 0) return `There is nothing to ${WORDS[action].verb.toLowerCase()}.`;
  if (isOpenEnded(selector) && !isTyped(typed, count)) return `Type ${number(count)} first.`;
  return undefined;
}
