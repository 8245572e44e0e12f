import { useState } from "react";
import { type DeadLetter, useEditedRequeue } from "~/api/dead-letter";
import * as common from "~/texts/common";
import * as texts from "~/texts/editing";
import { announce, Button, Dialog, DialogClose, Tabs } from "~/ui";
import { BodyField } from "./BodyField";
import { type Base, type Draft, editOf, isUnchanged, wrongBody, wrongHeaders } from "./draft";
import styles from "./Editor.module.css";
import { EditProblem } from "./EditProblem";
import { HeadersField } from "./HeadersField";
import { Review } from "./Review";

type Step = "edit" | "review";
type Part = "body" | "headers";

export interface EditorProps {
  deadLetter: DeadLetter;
  onClose(): void;
  /** Called when the edited dead letter was requeued. */
  onDone(): void;
}

/** Edits body and headers, shows the changes, and requeues. The user's input is kept until the requeue succeeds. */
export function Editor({ deadLetter, first, onClose, onDone }: EditorProps & { first: Base }) {
  const [base, setBase] = useState(first);
  const [draft, setDraft] = useState<Draft>(first);
  const [step, setStep] = useState<Step>("edit");
  const [part, setPart] = useState<Part>("body");
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const requeue = useEditedRequeue(deadLetter.id);

  const unchanged = isUntouched(base, draft);
  function edit(changes: Partial<Draft>) {
    setDraft({ ...draft, ...changes });
    setForce(false);
    requeue.reset();
  }
  function send() {
    requeue.mutate(
      { edit: editOf(base, draft), reason, force },
      {
        onSuccess(item) {
          if (item?.outcome !== "requeued") return;
          announce(texts.done(deadLetter.id));
          onClose();
          onDone();
        },
      },
    );
  }
  const wrong = wrongBody(draft) ?? wrongHeaders(draft);
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      unsaved={!unchanged}
      title={texts.stepTitle(step === "edit", deadLetter.id)}
      description={step === "edit" ? texts.editHint : texts.reviewHint}
      actions={
        step === "edit" ? (
          <>
            <DialogClose>{common.cancel}</DialogClose>
            <Button
              look="primary"
              whyNot={wrong ?? (unchanged ? texts.noChanges : undefined)}
              onClick={() => setStep("review")}
            >
              {texts.review}
            </Button>
          </>
        ) : (
          <>
            <Button icon="left" onClick={() => setStep("edit")}>
              {texts.back}
            </Button>
            <Button
              look="primary"
              icon="operations"
              busy={requeue.isPending}
              whyNot={unchanged ? texts.noChangesLeft : undefined}
              onClick={send}
            >
              {texts.requeue}
            </Button>
          </>
        )
      }
    >
      <div className={styles.steps}>
        <EditProblem
          deadLetter={deadLetter}
          base={base}
          requeue={requeue}
          force={force}
          onForce={setForce}
          onBase={(now) => {
            setBase(now);
            requeue.reset();
          }}
        />
        {step === "edit" ? (
          <Tabs<Part>
            label={texts.part}
            tabs={[
              { value: "body", label: texts.body },
              { value: "headers", label: texts.headers },
            ]}
            value={part}
            onChoose={setPart}
          >
            {part === "body" ? (
              <BodyField draft={draft} contentType={deadLetter.content_type} onEdit={edit} />
            ) : (
              <HeadersField draft={draft} deadLetter={deadLetter} onEdit={edit} />
            )}
          </Tabs>
        ) : (
          <Review base={base} draft={draft} reason={reason} onReason={setReason} />
        )}
      </div>
    </Dialog>
  );
}

/** Whether the draft has no changes. An invalid draft cannot be parsed, so its text is compared instead. */
function isUntouched(base: Base, draft: Draft): boolean {
  if (wrongBody(draft) === undefined && wrongHeaders(draft) === undefined) return isUnchanged(base, draft);
  return draft.body === base.body && draft.headers === base.headers && draft.form === base.form;
}
