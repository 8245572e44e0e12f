import { type FormEvent, useRef, useState } from "react";
import { Link } from "wouter";
import { type Group, useGroupPolicy } from "~/api/dead-letters";
import { randomKey } from "~/lib/random";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Ago, announce, Badge, Button, Choice, Dialog, DialogClose, Problem, TextField } from "~/ui";
import styles from "./Note.module.css";

const MAX_PER_HOUR = 100_000;
const DEFAULT_PER_HOUR = 100;

/** One-line summary of the requeue policy. */
export function PolicyOf({ of: policy }: { of: NonNullable<Group["requeue_policy"]> }) {
  const { operation_id: operation, started_at: started, stopped_at: stopped } = policy;
  return (
    <>
      {texts.policyLine(policy.per_hour ?? 0, policy.set_by ?? "")}
      {operation !== null && (
        <>
          {" · "}
          <Link href={`/operations/${operation}`}>{texts.policyOperation(operation)}</Link>{" "}
          {started && <Ago at={started} />}
        </>
      )}
      {stopped && (
        <>
          {" "}
          <Badge tone="warn">{texts.policyStopped}</Badge> <Ago at={stopped} />: {policy.stopped_because}
        </>
      )}
    </>
  );
}

/** Sets how many dead letters of a group are requeued per hour, or removes the policy. */
export function PolicyDialog({ group, onClose }: { group: Group; onClose(): void }) {
  const before = group.requeue_policy;
  const initial = String(before?.per_hour ?? DEFAULT_PER_HOUR);
  const [mode, setMode] = useState<"on" | "off">("on");
  const [perHour, setPerHour] = useState(initial);
  const sent = useRef({ text: "", key: "" });
  const { mutate, isPending, error } = useGroupPolicy(group.id);
  const limit = Number(perHour.replaceAll(",", ""));
  const fits = mode === "off" || (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PER_HOUR);
  const wrong = fits ? undefined : texts.mutedWrong;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (wrong) return;
    const wanted = mode === "on" ? limit : null;
    if (sent.current.text !== String(wanted)) sent.current = { text: String(wanted), key: randomKey() };
    mutate(
      { per_hour: wanted, key: sent.current.key },
      {
        onSuccess() {
          announce(wanted === null ? texts.policyGone : texts.policySet(wanted));
          onClose();
        },
      },
    );
  }
  return (
    <Dialog
      open
      onClose={onClose}
      unsaved={perHour !== initial}
      title={texts.policyTitle}
      description={group.title}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button look="primary" type="submit" form="group-policy" busy={isPending} whyNot={wrong}>
            {texts.markSave}
          </Button>
        </>
      }
    >
      <form id="group-policy" className={styles.form} onSubmit={submit}>
        <p>{texts.policyMeaning}</p>
        {before && (
          <Choice<"on" | "off">
            label={texts.policy}
            value={mode}
            onChoose={setMode}
            options={[
              ["on", texts.policyOn],
              ["off", texts.policyOff],
            ]}
          />
        )}
        {mode === "on" && (
          <TextField
            label={texts.policyPerHour}
            inputMode="numeric"
            value={perHour}
            error={wrong}
            onChange={(event) => setPerHour(event.target.value)}
          />
        )}
        {error && <Problem of={error} />}
      </form>
    </Dialog>
  );
}
