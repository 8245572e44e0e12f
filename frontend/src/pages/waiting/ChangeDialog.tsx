import { type FormEvent, useId, useState } from "react";
import {
  type Change,
  useChange,
  useChangeDryRun,
  type WaitingAction,
  type WaitingTarget,
} from "~/api/waiting";
import { parseTimeInput } from "~/lib/clock";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/waiting";
import { announce, Button, Dialog, DialogClose, Problem, TextArea, TextField } from "~/ui";
import styles from "./Waiting.module.css";

interface ChangeDialogProps {
  action: WaitingAction;
  target: WaitingTarget;
  onClose(): void;
}

/** Asks for confirmation and a reason before waiting messages are changed. */
export function ChangeDialog({ action, target, onClose }: ChangeDialogProps) {
  const form = useId();
  const { zone } = usePreferences();
  const [reason, setReason] = useState("");
  const [due, setDue] = useState("");
  const [priority, setPriority] = useState("");
  const plan = useChangeDryRun(action, target);
  const change = useChange(action, target, ({ counts, items }) => {
    const undone = items.filter(({ outcome }) => outcome !== "done");
    const parts = [
      ...(counts.done ? [texts.done(action, counts.done)] : []),
      ...(undone[0] ? [texts.notDone(undone.length, undone[0].reason)] : []),
    ];
    announce(parts.join(" ") || texts.nothingMatches);
    onClose();
  });
  const count = "ids" in target ? target.ids.length : plan.data?.count;
  const when = parseTimeInput(due, zone);
  const wrong = validate(action, when, priority) ?? (count === 0 ? texts.nothingMatches : undefined);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (wrong || count === undefined || change.isPending) return;
    const wanted: Change = { reason: reason.trim() || null };
    if (when) wanted.due_at = when;
    if (priority) wanted.priority = Number(priority);
    if (plan.data) wanted.confirm_token = plan.data.confirm_token;
    change.mutate(wanted);
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.titles[action]}
      description={texts.meanings[action]}
      unsaved={reason !== "" && !change.isPending}
      actions={
        <>
          <DialogClose>{texts.keep}</DialogClose>
          <Button
            type="submit"
            form={form}
            look={action === "cancel" || action === "dead_letter" ? "danger" : "primary"}
            busy={change.isPending || count === undefined}
            whyNot={wrong}
          >
            {count === undefined ? texts.counting : texts.submit(action, count)}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        {plan.data && <p>{texts.matching(plan.data.count)}</p>}
        {plan.error && <Problem of={plan.error} onRetry={() => void plan.refetch()} />}
        {action === "reschedule" && (
          <>
            <TextField
              label={texts.due(zone === "utc" ? "UTC" : "local")}
              hint={texts.dueHint}
              type="datetime-local"
              value={due}
              onChange={(event) => setDue(event.target.value)}
            />
            <TextField
              label={texts.priority}
              hint={texts.priorityHint}
              inputMode="numeric"
              value={priority}
              onChange={(event) => setPriority(event.target.value.trim())}
            />
          </>
        )}
        <TextArea
          label={texts.reason}
          hint={texts.reasonHint}
          rows={2}
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        {change.error && <Problem of={change.error} />}
      </form>
    </Dialog>
  );
}

/** Returns why the input is invalid; undefined if it is valid. */
export function validate(
  action: WaitingAction,
  due: string | undefined,
  priority: string,
): string | undefined {
  if (action !== "reschedule") return undefined;
  if (priority && !/^[0-9]$/.test(priority)) return texts.wrongPriority;
  return due || priority ? undefined : texts.nothingChosen;
}
