import { type FormEvent, useRef, useState } from "react";
import { type Group, useNoteGroup } from "~/api/dead-letters";
import { useWhyNot } from "~/api/session";
import { randomKey } from "~/lib/random";
import { Ago, announce, Button, Dialog, DialogClose, Icon, Problem, TextArea } from "~/ui";
import styles from "./Note.module.css";

/** What somebody noted about a group, and the way to note something. */
export function NoteOf({ group }: { group: Group }) {
  const [editing, setEditing] = useState(false);
  const may = useWhyNot("repair");
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
      <Button look="quiet" icon="edit" whyNot={may} onClick={() => setEditing(true)}>
        {note ? "Change the note" : "Add a note"}
        <span className="unseen"> of the group {group.title}</span>
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
  const wanted = text.trim();
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!sent.current.key || sent.current.text !== wanted) sent.current = { text: wanted, key: randomKey() };
    mutate(
      { note: wanted || null, key: sent.current.key },
      {
        onSuccess() {
          announce(wanted ? "The note is set." : "The note is taken away.");
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
      title="Note about the group"
      description={`${group.title}. Everybody who looks at the group sees it; the audit keeps each.`}
      actions={
        <>
          <DialogClose>Cancel</DialogClose>
          <Button
            look="primary"
            type="submit"
            form="group-note"
            busy={isPending}
            whyNot={wanted === before ? "Nothing is changed yet." : undefined}
          >
            {wanted || !before ? "Set the note" : "Take the note away"}
          </Button>
        </>
      }
    >
      <form id="group-note" className={styles.form} onSubmit={submit}>
        <TextArea
          label="Note"
          hint="Whom to ask, what is known, which ticket it has. Empty: no note."
          value={text}
          onChange={(event) => setText(event.target.value)}
          autoFocus
        />
        {error && <Problem of={error} />}
      </form>
    </Dialog>
  );
}
