import { useState } from "react";
import type { DeadLetter } from "~/api/dead-letter";
import * as texts from "~/texts/editing";
import { Dialog } from "~/ui";
import { type Base, baseOf, isHidden } from "./draft";
import { Editor, type EditorProps } from "./Editor";
import { RevealStep } from "./RevealStep";

/** Edits one dead letter in three steps: reveal masked values, edit, review and send. */
export function EditDialog({ deadLetter, onClose, onDone }: EditorProps) {
  const [read, setRead] = useState<{ base: Base; deadLetter: DeadLetter } | undefined>(() =>
    isHidden(deadLetter) ? undefined : { base: baseOf(deadLetter), deadLetter },
  );
  if (read)
    return <Editor deadLetter={read.deadLetter} first={read.base} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog open onClose={onClose} title={texts.titleOf(deadLetter.id)}>
      <RevealStep
        deadLetter={deadLetter}
        onCancel={onClose}
        onRead={(base) => setRead({ base, deadLetter })}
      />
    </Dialog>
  );
}
