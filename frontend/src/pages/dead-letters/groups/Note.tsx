import { type FormEvent, useRef, useState } from "react";
import { type Group, useNoteGroup } from "~/api/dead-letters";
import { toFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import { randomKey } from "~/lib/random";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Ago, announce, Button, Dialog, DialogClose, Icon, Problem, TextArea } from "~/ui";
import styles from "./Note.module.css";

/** The note on a group, and its editor. */
export function NoteOf({ group }: { group: Group }) {
  const [editing, setEditing] = useState(false);
  const denied = useWhyNot("repair");
  const { note } = group;
  return (
    <div className={styles.note}>
      {note && (
        <p>
          <Icon name="info" /> {note.text}{" "}
          <span className={styles.by}>
            {note.noted_by}, <Ago at={note.noted_at} />
          </span>
        </p>
      )}
      <Button look="quiet" icon="edit" whyNot={denied} onClick={() => setEditing(true)}>
        {note ? texts.changeNote : texts.addNote}
        <span className="unseen"> {texts.ofGroup(group.title)}</span>
      </Button>
      {editing && <NoteDialog group={group} onClose={() => setEditing(false)} />}
    </div>
  );
}

function NoteDialog({ group, onClose }: { group: Group; onClose(): void }) {
  const before = group.note?.text ?? "";
  const [text, setText] = useState(before);
  const sent = useRef({ text: "", key: "" });
  const { mutate, isPending, error } = useNoteGroup(group);
  // The note that the user has seen: that of the group, or the one that another user has saved in the meantime.
  const [seen, setSeen] = useState(group.note);
  const isOvertaken = error !== null && toFailure(error).code === "version_conflict";
  const wanted = text.trim();
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!sent.current.key || sent.current.text !== wanted) sent.current = { text: wanted, key: randomKey() };
    mutate(
      { note: wanted || null, version: seen?.version ?? 0, key: sent.current.key },
      {
        onError(thrown) {
          const { code, more } = toFailure(thrown);
          if (code === "version_conflict") setSeen(more.note as Group["note"]);
        },
        onSuccess() {
          announce(wanted ? texts.noteSaved : texts.noteRemoved);
          onClose();
        },
      },
    );
  }
  return (
    <Dialog
      open
      onClose={onClose}
      unsaved={wanted !== before}
      title={texts.noteTitle}
      description={texts.noteHint(group.title)}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button
            look="primary"
            type="submit"
            form="group-note"
            busy={isPending}
            whyNot={wanted === before ? texts.noChanges : undefined}
          >
            {wanted || !before ? texts.saveNote : texts.removeNote}
          </Button>
        </>
      }
    >
      <form id="group-note" className={styles.form} onSubmit={submit}>
        <TextArea
          label={texts.note}
          hint={texts.noteFieldHint}
          value={text}
          onChange={(event) => setText(event.target.value)}
          autoFocus
        />
        {isOvertaken && seen && (
          <TextArea label={texts.currentNote} hint={texts.currentNoteHint} readOnly value={seen.text} />
        )}
        {error && <Problem of={error} />}
      </form>
    </Dialog>
  );
}
