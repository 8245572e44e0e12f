import { useState } from "react";
import type { Letter } from "~/api/dead-letter";
import { Dialog } from "~/ui";
import { type Base, baseOf, isHidden } from "./draft";
import { Editor } from "./Editor";
import type { EditingProps } from "./index";
import { Unmask } from "./Unmask";

/** Edits one dead letter: first all of it has to be seen, then it is changed, then what changed is looked at and sent. */
export function EditDialog({ letter, onClose, onDone }: EditingProps) {
  const [read, setRead] = useState<{ base: Base; letter: Letter } | undefined>(() =>
    isHidden(letter) ? undefined : { base: baseOf(letter), letter },
  );
  if (read) return <Editor letter={read.letter} first={read.base} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog open onClose={onClose} title={`Edit dead letter ${letter.id}`}>
      <Unmask letter={letter} onCancel={onClose} onRead={(base) => setRead({ base, letter })} />
    </Dialog>
  );
}
