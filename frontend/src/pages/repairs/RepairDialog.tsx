import { type FormEvent, useEffect, useId, useState } from "react";
import { number } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/repairs";
import { Button, Dialog, DialogClose, TextField } from "~/ui";
import { ACTION_TEXTS, meaningOf } from "./action-texts";
import { DryRunResult } from "./DryRunResult";
import { Outcomes } from "./Outcomes";
import { isOpenEnded } from "./options";
import styles from "./RepairDialog.module.css";
import { RepairOptions } from "./RepairOptions";
import { RepairProblem } from "./RepairProblem";
import type { RepairDialogProps } from "./types";
import { type RepairForm, useRepairForm } from "./useRepairForm";

/** Shows what a dry run found, asks how and why, does it, and says what came of it. */
export function RepairDialog({ onClose, onDone, ...given }: RepairDialogProps) {
  // What is meant stays what it was when the dialog opened, also when the selection behind it is cleared.
  const [meant] = useState(given);
  const props = { ...meant, onClose, onDone };
  const { action, describe } = meant;
  useFocusLeft();
  const words = ACTION_TEXTS[action];
  const form = useId();
  const repairing = useRepairForm(props);
  const { repair, isLost } = repairing;
  const answer = repair.data;

  function submit(event: FormEvent) {
    event.preventDefault();
    repairing.send();
  }

  if (answer?.kind === "immediate") return <Outcomes repaired={answer.repaired} onClose={onClose} />;
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      unsaved={repairing.isTouched && !repair.isPending}
      title={`${words.verb} ${describe}`}
      description={meaningOf(action, props.selector)}
      actions={<Actions form={form} repairing={repairing} {...props} />}
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <RepairProblem repairing={repairing} />
        <div className={styles.columns} inert={repair.isPending || isLost}>
          <DryRunResult action={action} selector={props.selector} repairing={repairing} />
          <RepairOptions repairing={repairing} {...props} />
        </div>
      </form>
    </Dialog>
  );
}

/** Closed, it leaves focus at the page's title where the button that opened it is gone. */
function useFocusLeft(): void {
  useEffect(
    () => () => {
      setTimeout(() => {
        if (document.activeElement === document.body) document.getElementById("page-title")?.focus();
      }, 100);
    },
    [],
  );
}

function Actions({
  form,
  repairing,
  action,
  selector,
}: RepairDialogProps & { form: string; repairing: RepairForm }) {
  const { repair, isLost, isCurrent, count, typed, setTyped, whyNot } = repairing;
  const words = ACTION_TEXTS[action];
  return (
    <>
      {isOpenEnded(selector) && isCurrent && count > 0 && !isLost && (
        <div className={styles.typed}>
          <TextField
            label={texts.typeToConfirm(count)}
            form={form}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </div>
      )}
      <DialogClose>{common.close}</DialogClose>
      <Button type="submit" form={form} look={words.look} busy={repair.isPending} whyNot={whyNot}>
        {isLost ? texts.askAgain : count > 0 ? `${words.verb} ${number(count)}` : words.verb}
      </Button>
    </>
  );
}
