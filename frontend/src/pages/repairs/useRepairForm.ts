// What the dialog knows: what was typed, what the dry run found, what is under way, and why it cannot go on.

import { useState } from "react";
import {
  type Action,
  mayHaveSucceeded,
  type Selector,
  useDryRun,
  useRepair,
  withoutNewer,
} from "~/api/repairs";
import { useWhyNot } from "~/api/session";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/repairs";
import { ACTION_TEXTS } from "./action-texts";
import {
  DEFAULT_OPTIONS,
  type Errors,
  errorsIn,
  executionOptionsOf,
  isOpenEnded,
  isTyped,
  type Options,
  requestOf,
  usesCanary,
} from "./options";
import { countChangeOf, DRY_RUN_EXPIRED, errorsOf } from "./problems";
import type { RepairDialogProps } from "./types";
import { useRepairOutcome } from "./useRepairOutcome";
import { useSettled } from "./useSettled";
import { useTokenExpiry } from "./useTokenExpiry";

export type RepairForm = ReturnType<typeof useRepairForm>;

export function useRepairForm(props: RepairDialogProps) {
  const { action } = props;
  /** Without what died since a dry run, where the number would not stand still otherwise. */
  const [pinned, setPinned] = useState<{ selector: Selector; at: string }>();
  const selector = pinned?.selector ?? props.selector;
  const [options, setOptions] = useState<Options>(DEFAULT_OPTIONS);
  const { zone } = usePreferences();
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
  const { settled, isSettled } = useSettled(requestOf({ ...props, selector }, options), first);
  const run = useDryRun(settled);
  const repair = useRepair(useRepairOutcome(props, setNotice, () => void run.refetch()));
  const mayNot = useWhyNot(action === "purge" ? "purge" : "repair");

  const lookAgain = (why?: string) => {
    setNotice(why);
    repair.reset();
    void run.refetch();
  };
  useTokenExpiry(
    run.data,
    run.dataUpdatedAt,
    () => !repair.isPending && !isLost && lookAgain(DRY_RUN_EXPIRED),
  );

  const isCurrent = isSettled && !run.isFetching && run.data !== undefined && !run.error;
  const count = run.data?.count ?? 0;
  const careful = action === "requeue" && !props.edit && usesCanary(options, selector, count);
  const errors: Errors = { ...errorsIn(options, action, careful), ...errorsOf(repair.error ?? run.error) };
  const isLost = repair.error !== null && mayHaveSucceeded(repair.error);
  const facts = { action, selector: settled.selector, errors, isCurrent, count, typed };
  const whyNot =
    mayNot ?? (isLost ? undefined : whyNotYet({ ...facts, refused: run.error, failed: repair.error }));

  const before =
    action === "requeue" || action === "discard" ? withoutNewer(props.selector, run.data?.at) : undefined;

  return {
    ...{ options, typed, notice, run, repair, errors, count, careful, isCurrent, isLost, whyNot, pinned },
    /** Something was typed or chosen that is gone when the dialog closes. */
    isTouched: typed !== "" || options !== DEFAULT_OPTIONS,
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
        repair.mutate({
          wanted: settled,
          options: executionOptionsOf(options, careful, zone),
          token: run.data.token,
        });
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
  if (facts.refused) return texts.dryRunRejected;
  if (!isCurrent) return texts.dryRunRunning;
  if (countChangeOf(facts.failed)) return texts.repeatDryRun;
  if (count === 0) return texts.nothingTo(ACTION_TEXTS[action].verb.toLowerCase());
  if (isOpenEnded(selector) && !isTyped(typed, count)) return texts.typeFirst(count);
  return undefined;
}
