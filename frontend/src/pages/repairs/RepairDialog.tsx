import { type FormEvent, useEffect, useId, useState } from "react";
import { number } from "~/lib/format";
import { Button, Dialog, DialogClose, TextField } from "~/ui";
import type { RepairDialogProps } from "./index";
import { Manners } from "./Manners";
import { Outcomes } from "./Outcomes";
import { isOpenEnded } from "./options";
import styles from "./RepairDialog.module.css";
import { Seen } from "./Seen";
import { Trouble } from "./Trouble";
import { type Repairing, useRepairing } from "./useRepairing";
import { meaningOf, WORDS } from "./words";

/** Shows what a dry run found, asks how and why, does it, and says what came of it. */
export function RepairDialog({ onClose, onDone, ...given }: RepairDialogProps) {
  // What is meant stays what it was when the dialog opened, also when the selection behind it is cleared.
  const [meant] = useState(given);
  const props = { ...meant, onClose, onDone };
  const { action, describe } = meant;
  useFocusLeft();
  const words = WORDS[action];
  const form = useId();
  const repairing = useRepairing(props);
  const { repair, isLost } = repairing;
  const answer = repair.data;

  function submit(event: FormEvent) {
    event.preventDefault();
    repairing.send();
  }

  if (answer?.at === "once") return <Outcomes repaired={answer.repaired} onClose={onClose} />;
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
        <Trouble repairing={repairing} />
        <div className={styles.columns} inert={repair.isPending || isLost}>
          <Seen action={action} selector={props.selector} repairing={repairing} />
          <Manners repairing={repairing} {...props} />
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
}: RepairDialogProps & { form: string; repairing: Repairing }) {
  const { repair, isLost, isCurrent, count, typed, setTyped, whyNot } = repairing;
  const words = WORDS[action];
  return (
    <>
      {isOpenEnded(selector) && isCurrent && count > 0 && !isLost && (
        <div className={styles.typed}>
          <TextField
            label={`Type ${number(count)} to confirm`}
            form={form}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </div>
      )}
      <DialogClose>Close</DialogClose>
      <Button type="submit" form={form} look={words.look} busy={repair.isPending} whyNot={whyNot}>
        {isLost ? "Ask again" : count > 0 ? `${words.verb} ${number(count)}` : words.verb}
      </Button>
    </>
  );
}
