import { type FormEvent, useRef, useState } from "react";
import { type Group, useMarkGroup } from "~/api/dead-letters";
import { randomKey } from "~/lib/random";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { announce, Button, Choice, Dialog, DialogClose, Problem, TextField } from "~/ui";
import styles from "./Note.module.css";

type Status = "open" | "fixed" | "muted";

const CHOICES: readonly (readonly [Status, string])[] = [
  ["fixed", texts.asFixed],
  ["muted", texts.asMuted],
  ["open", texts.asOpen],
];
const MEANINGS: Record<Status, string> = {
  fixed: texts.fixedMeaning,
  muted: texts.mutedMeaning,
  open: texts.openMeaning,
};

/** Marks a group as fixed or muted, or removes its mark. */
export function MarkDialog({ group, onClose }: { group: Group; onClose(): void }) {
  const [status, setStatus] = useState<Status>(group.mark ? "open" : "fixed");
  const [version, setVersion] = useState("");
  const [above, setAbove] = useState(String(Math.max(1, 2 * group.open_count)));
  const sent = useRef({ text: "", key: "" });
  const { mutate, isPending, error } = useMarkGroup(group.id);
  const limit = Number(above.replaceAll(",", ""));
  const wrong =
    status === "muted" && !(Number.isInteger(limit) && limit >= 1 && limit <= 100_000)
      ? texts.mutedWrong
      : undefined;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (wrong) return;
    const mark = {
      status,
      ...(status === "fixed" && version.trim() && { fixed_in: version.trim() }),
      ...(status === "muted" && { muted_above: limit }),
    };
    const text = JSON.stringify(mark);
    if (sent.current.text !== text) sent.current = { text, key: randomKey() };
    mutate(
      { ...mark, key: sent.current.key },
      {
        onSuccess() {
          announce(texts.marked[status]);
          onClose();
        },
      },
    );
  }
  return (
    <Dialog
      open
      onClose={onClose}
      unsaved={version !== ""}
      title={texts.markTitle}
      description={group.title}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button look="primary" type="submit" form="group-mark" busy={isPending} whyNot={wrong}>
            {texts.markSave}
          </Button>
        </>
      }
    >
      <form id="group-mark" className={styles.form} onSubmit={submit}>
        <Choice<Status>
          label={texts.markAs}
          hint={MEANINGS[status]}
          value={status}
          onChoose={setStatus}
          options={group.mark ? CHOICES : CHOICES.slice(0, 2)}
        />
        {status === "fixed" && (
          <TextField
            label={texts.fixedIn}
            hint={texts.fixedInHint}
            value={version}
            maxLength={100}
            autoComplete="off"
            onChange={(event) => setVersion(event.target.value)}
          />
        )}
        {status === "muted" && (
          <TextField
            label={texts.mutedAbove}
            inputMode="numeric"
            value={above}
            error={wrong}
            onChange={(event) => setAbove(event.target.value)}
          />
        )}
        {error && <Problem of={error} />}
      </form>
    </Dialog>
  );
}
