import { type FormEvent, useId, useState } from "react";
import { nameOf, type Pause, useResume } from "~/api/pauses";
import { Ago, announce, Button, Dialog, Facts, Problem, TextArea } from "~/ui";
import styles from "./Components.module.css";

/** Shows why it was paused before it takes that back. */
export function ResumeDialog({ pause, onClose }: { pause: Pause; onClose(): void }) {
  const [reason, setReason] = useState("");
  const form = useId();
  const name = nameOf(pause);
  const resume = useResume(({ resumed, still_paused_by }) => {
    const still = still_paused_by.map(nameOf).join(", ");
    const what = resumed ? `Resumed ${name}.` : `Somebody had resumed ${name} already.`;
    announce(still ? `${what} Some of it stays paused, by the pause of ${still}.` : what);
    onClose();
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (resume.isPending) return;
    resume.mutate({ scope: pause.scope, name: pause.name, reason: reason.trim() || null });
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Resume ${name}`}
      description="It takes up its work again at once."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} look="primary" icon="play" busy={resume.isPending}>
            Resume {name}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <Facts
          of={[
            ["Paused by", pause.requested_by ?? "somebody"],
            ["Paused", <Ago key="" at={pause.requested_at} />],
            ["Reason", pause.reason ?? "none was given"],
            ["Ends by itself", pause.until ? <Ago key="" at={pause.until} /> : "never"],
          ]}
        />
        <TextArea
          label="Reason for resuming, for the audit"
          rows={2}
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        {resume.error && <Problem of={resume.error} />}
      </form>
    </Dialog>
  );
}
