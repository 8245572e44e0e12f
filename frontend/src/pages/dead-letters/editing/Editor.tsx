import { useState } from "react";
import { type Letter, useEditedRequeue } from "~/api/dead-letter";
import { announce, Button, Dialog, DialogClose, Tabs } from "~/ui";
import { BodyField } from "./BodyField";
import { type Base, type Draft, editOf, isUnchanged, wrongBody, wrongHeaders } from "./draft";
import styles from "./Editor.module.css";
import { HeadersField } from "./HeadersField";
import type { EditingProps } from "./index";
import { Refusal } from "./Refusal";
import { Review } from "./Review";

type Step = "edit" | "review";
type Part = "body" | "headers";

/** Body and headers in an editor, then what changed, then off it goes. What was typed stays until it went. */
export function Editor({
  letter,
  first,
  onClose,
  onDone,
}: Omit<EditingProps, "letter"> & { letter: Letter; first: Base }) {
  const [base, setBase] = useState(first);
  const [draft, setDraft] = useState<Draft>(first);
  const [step, setStep] = useState<Step>("edit");
  const [part, setPart] = useState<Part>("body");
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const requeue = useEditedRequeue(letter.id);

  const unchanged = isUnchangedOr(base, draft);
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
          announce(`Dead letter ${letter.id} was edited and requeued.`);
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
      title={`${step === "edit" ? "Edit" : "Requeue the edited"} dead letter ${letter.id}`}
      description={
        step === "edit"
          ? "Nothing is sent yet: what you change is shown once more before."
          : "This is what you changed. What was there before is kept as an edition."
      }
      actions={
        step === "edit" ? (
          <>
            <DialogClose>Cancel</DialogClose>
            <Button
              look="primary"
              whyNot={wrong ?? (unchanged ? "Nothing is changed yet." : undefined)}
              onClick={() => setStep("review")}
            >
              Look at the changes
            </Button>
          </>
        ) : (
          <>
            <Button icon="left" onClick={() => setStep("edit")}>
              Back to the editor
            </Button>
            <Button
              look="primary"
              icon="operations"
              busy={requeue.isPending}
              whyNot={unchanged ? "Nothing is changed any more." : undefined}
              onClick={send}
            >
              Requeue it
            </Button>
          </>
        )
      }
    >
      <div className={styles.steps}>
        <Refusal
          letter={letter}
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
            label="What is edited"
            tabs={[
              { value: "body", label: "Body" },
              { value: "headers", label: "Headers" },
            ]}
            value={part}
            onChoose={setPart}
          >
            {part === "body" ? (
              <BodyField draft={draft} contentType={letter.content_type} onEdit={edit} />
            ) : (
              <HeadersField draft={draft} letter={letter} onEdit={edit} />
            )}
          </Tabs>
        ) : (
          <Review base={base} draft={draft} reason={reason} onReason={setReason} />
        )}
      </div>
    </Dialog>
  );
}

/** What is wrong is changed, too. */
function isUnchangedOr(base: Base, draft: Draft): boolean {
  if (wrongBody(draft) === undefined && wrongHeaders(draft) === undefined) return isUnchanged(base, draft);
  return draft.body === base.body && draft.headers === base.headers && draft.form === base.form;
}
