// State of the repair dialog: input, dry run, running change, and why it cannot be submitted.

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
  /** The selection without dead letters newer than a dry run, for when the count keeps changing. */
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
  const denied = useWhyNot(action === "purge" ? "purge" : "repair");

  const repeatDryRun = (why?: string) => {
    setNotice(why);
    repair.reset();
    void run.refetch();
  };
  useTokenExpiry(
    run.data,
    run.dataUpdatedAt,
    () => !repair.isPending && !isLost && repeatDryRun(DRY_RUN_EXPIRED),
  );

  const isCurrent = isSettled && !run.isFetching && run.data !== undefined && !run.error;
  const count = run.data?.count ?? 0;
  const withCanary = action === "requeue" && !props.edit && usesCanary(options, selector, count);
  const errors: Errors = {
    ...errorsIn(options, action, withCanary, zone),
    ...errorsOf(repair.error ?? run.error),
  };
  const isLost = repair.error !== null && mayHaveSucceeded(repair.error);
  const facts = { action, selector: settled.selector, errors, isCurrent, count, typed };
  const whyNot =
    denied ?? (isLost ? undefined : whyNotYet({ ...facts, dryRunError: run.error, failed: repair.error }));

  const before =
    action === "requeue" || action === "discard" ? withoutNewer(props.selector, run.data?.at) : undefined;

  return {
    ...{ options, typed, notice, run, repair, errors, count, withCanary, isCurrent, isLost, whyNot, pinned },
    /** Whether there is input that closing the dialog would discard. */
    isTouched: typed !== "" || options !== DEFAULT_OPTIONS,
    setTyped,
    /** Excludes dead letters newer than the dry run; undefined if that is not possible. */
    excludeNew:
      before && run.data?.at
        ? () => {
            setPinned({ selector: before, at: run.data?.at ?? "" });
            repair.reset();
          }
        : undefined,
    repeatDryRun,
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
          options: executionOptionsOf(options, withCanary, zone),
          token: run.data.token,
        });
      }
    },
  };
}

/** Returns why the button is disabled. */
function whyNotYet(facts: {
  action: Action;
  selector: Selector;
  errors: Errors;
  isCurrent: boolean;
  count: number;
  typed: string;
  dryRunError: unknown;
  failed: unknown;
}): string | undefined {
  const { action, selector, errors, isCurrent, count, typed } = facts;
  const [error] = Object.values(errors);
  if (error) return error;
  if (facts.dryRunError) return texts.dryRunRejected;
  if (!isCurrent) return texts.dryRunRunning;
  if (countChangeOf(facts.failed)) return texts.repeatDryRun;
  if (count === 0) return texts.nothingTo(ACTION_TEXTS[action].verb.toLowerCase());
  if (isOpenEnded(selector) && !isTyped(typed, count)) return texts.typeFirst(count);
  return undefined;
}
