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

/** Shows a dry run, asks for options and a reason, runs the change, and shows the outcome. */
export function RepairDialog({ onClose, onDone, ...given }: RepairDialogProps) {
  // Keeps the selection from when the dialog opened, also if the list clears its selection.
  const [initial] = useState(given);
  const props = { ...initial, onClose, onDone };
  const { action, describe } = initial;
  useFocusTitleAtClose();
  const words = ACTION_TEXTS[action];
  const form = useId();
  const repairForm = useRepairForm(props);
  const { repair, isLost } = repairForm;
  const answer = repair.data;

  function submit(event: FormEvent) {
    event.preventDefault();
    repairForm.send();
  }

  if (answer?.kind === "immediate") return <Outcomes repaired={answer.repaired} onClose={onClose} />;
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      unsaved={repairForm.isTouched && !repair.isPending}
      title={`${words.verb} ${describe}`}
      description={meaningOf(action, props.selector)}
      actions={<Actions form={form} repairForm={repairForm} {...props} />}
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <RepairProblem repairForm={repairForm} />
        <div className={styles.columns} inert={repair.isPending || isLost}>
          <DryRunResult action={action} selector={props.selector} repairForm={repairForm} />
          <RepairOptions repairForm={repairForm} {...props} />
        </div>
      </form>
    </Dialog>
  );
}

/** Moves focus to the page title after closing, if the button that opened the dialog is gone. */
function useFocusTitleAtClose(): void {
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
  repairForm,
  action,
  selector,
}: RepairDialogProps & { form: string; repairForm: RepairForm }) {
  const { repair, isLost, isCurrent, count, typed, setTyped, whyNot } = repairForm;
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
