import { type FormEvent, useId, useState } from "react";
import { describeTarget, type Pause, useResume } from "~/api/pauses";
import * as common from "~/texts/common";
import * as texts from "~/texts/components";
import { Ago, announce, Button, Dialog, Facts, Problem, TextArea } from "~/ui";
import styles from "./Components.module.css";

/** Shows the reason of a pause before it is resumed. */
export function ResumeDialog({ pause, onClose }: { pause: Pause; onClose(): void }) {
  const [reason, setReason] = useState("");
  const form = useId();
  const name = describeTarget(pause);
  const resume = useResume(({ resumed, still_paused_by }) => {
    const still = still_paused_by.map(describeTarget).join(", ");
    const what = resumed ? texts.resumed(name) : texts.alreadyResumed(name);
    announce(still ? texts.stillPaused(what, still) : what);
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
      title={texts.resumeTarget(name)}
      description={texts.resumeHint}
      actions={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={form} look="primary" icon="play" busy={resume.isPending}>
            {texts.resumeTarget(name)}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <Facts
          of={[
            [texts.pausedBy, pause.requested_by ?? common.unknownActor],
            [texts.pausedAt, <Ago key="" at={pause.requested_at} />],
            [texts.reason, pause.reason ?? texts.noReason],
            [texts.endsAutomatically, pause.expires_at ? <Ago key="" at={pause.expires_at} /> : "never"],
          ]}
        />
        <TextArea
          label={texts.resumeReason}
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
