// What the dialog knows: what was typed, what the dry run found, what is under way, and why it cannot go on.

import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import {
  type Answer,
  mayHaveBeenDone,
  type Plan,
  type Selector,
  until,
  useDryRun,
  useRepair,
} from "~/api/repairs";
import { useWhyNot } from "~/api/session";
import { useNow } from "~/lib/clock";
import { number, plural } from "~/lib/format";
import { announce } from "~/ui";
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
import { driftOf, errorsOf, TOO_OLD, whyAgain } from "./troubles";
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
  const whyNot = isLost ? mayNot : (mayNot ?? reason());

  function reason(): string | undefined {
    if (Object.keys(errors).length > 0) return Object.values(errors)[0];
    if (run.error) return "The dry run was refused.";
    if (!isCurrent) return "The dry run is under way.";
    if (driftOf(repair.error)) return "Look again first: the number has changed.";
    if (count === 0) return `There is nothing to ${WORDS[action].verb.toLowerCase()}.`;
    if (isOpenEnded(selector) && !isTyped(typed, count)) return `Type ${number(count)} first.`;
    return undefined;
  }

  const before =
    action === "requeue" || action === "discard" ? until(props.selector, run.data?.at) : undefined;

  return {
    ...{ options, typed, notice, run, repair, errors, count, careful, isCurrent, isLost, whyNot, pinned },
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

/** Tells what came of it: on an operation's page, among the announcements, or in the dialog itself. */
function useTelling(
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
        announce(`${words.verb} ${props.describe}: ${thrown.message}`, "bad");
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

const SHORTEST_LIFE = 60_000;

/** Calls `end` when the token is over, by the time that it was given: clocks of servers and browsers differ. */
function useLifetime(plan: Plan | undefined, since: number, end: () => void): void {
  const now = useNow();
  const ended = useRef(0);
  useEffect(() => {
    if (!plan || ended.current === since) return;
    const life = Math.max(SHORTEST_LIFE, new Date(plan.expiresAt).getTime() - since);
    if (now - since < life) return;
    ended.current = since;
    end();
  });
}
