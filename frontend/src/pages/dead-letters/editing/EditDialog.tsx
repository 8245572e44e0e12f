import { useState } from "react";
import type { DeadLetter } from "~/api/dead-letter";
import * as texts from "~/texts/editing";
import { Dialog } from "~/ui";
import { type Base, baseOf, isHidden } from "./draft";
import { Editor, type EditorProps } from "./Editor";
import { RevealStep } from "./RevealStep";

/** Edits one dead letter: first all of it has to be seen, then it is changed, then what changed is looked at and sent. */
export function EditDialog({ letter, onClose, onDone }: EditorProps) {
  const [read, setRead] = useState<{ base: Base; letter: DeadLetter } | undefined>(() =>
    isHidden(letter) ? undefined : { base: baseOf(letter), letter },
  );
  if (read) return <Editor letter={read.letter} first={read.base} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog open onClose={onClose} title={texts.titleOf(letter.id)}>
      <RevealStep letter={letter} onCancel={onClose} onRead={(base) => setRead({ base, letter })} />
    </Dialog>
  );
}
