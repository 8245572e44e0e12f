import { type FormEvent, useId, useState } from "react";
import { type Message, type Reveal, useReread } from "~/api/messages";
import { toFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import { useMessageEdit } from "~/api/waiting";
import * as common from "~/texts/common";
import * as texts from "~/texts/waiting";
import { announce, Button, Checkbox, Dialog, DialogClose, Problem, TextArea, TextField } from "~/ui";
import { howToRead, isUnreadable } from "~/ui/payload";
import styles from "./Detail.module.css";

/** Changes the routing key or the body of a message before it is sent. A masked body is revealed first. */
export function EditDialog({
  message,
  reveal,
  onClose,
}: {
  message: Message;
  reveal: Reveal;
  onClose(): void;
}) {
  const form = useId();
  const revealDenied = useWhyNot("reveal");
  // What was not typed follows the message when it is read again.
  const [typedKey, setTypedKey] = useState<string>();
  const [typed, setTyped] = useState<string>();
  const [isOvertaken, setOvertaken] = useState(false);
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const edit = useMessageEdit(message.id, () => {
    announce(texts.edited(message.id));
    reveal.reset(); // The revealed body is outdated.
    onClose();
  });
  const reread = useReread(message.id);
  const routingKey = typedKey ?? message.routing_key;
  const access = (reveal.data ?? message).body_access;
  const hides = message.masked && (access !== null || message.body?.includes("***"));
  const shown = reveal.data ?? (hides ? undefined : message);
  const body = typed ?? shown?.body ?? undefined;
  const changes = {
    ...(routingKey.trim() !== message.routing_key && { routing_key: routingKey.trim() }),
    ...(typed !== undefined && typed !== shown?.body && { body: typed, encoding: "text" as const }),
  };
  const isUnchanged = Object.keys(changes).length === 0;
  const code = edit.error && toFailure(edit.error).code;

  function readAgain() {
    const onSuccess = () => {
      setOvertaken(true);
      edit.reset();
    };
    if (reveal.data) reveal.mutate(undefined, { onSuccess });
    else reread.mutate(undefined, { onSuccess });
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    if (isUnchanged || edit.isPending) return;
    const version = (reveal.data ?? message).version;
    edit.mutate({ ...changes, version, reason: reason.trim() || null, ...(force && { force }) });
  }
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={texts.editTitle(message.id)}
      description={texts.editMeaning}
      unsaved={!isUnchanged && !edit.isPending}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button
            type="submit"
            form={form}
            look="primary"
            busy={edit.isPending}
            whyNot={isUnchanged ? texts.nothingEdited : undefined}
          >
            {texts.save}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <TextField
          label={texts.routingKey}
          value={routingKey}
          maxLength={255}
          spellCheck={false}
          hint={
            isOvertaken && routingKey !== message.routing_key && texts.currentRoutingKey(message.routing_key)
          }
          onChange={(event) => setTypedKey(event.target.value)}
        />
        {access && isUnreadable(access) ? (
          <p className="quiet">{texts.cannotEditBody(howToRead(access))}</p>
        ) : shown === undefined && typed === undefined ? (
          <Button icon="eye" busy={reveal.isPending} whyNot={revealDenied} onClick={() => reveal.mutate()}>
            {texts.revealBody}
          </Button>
        ) : body === undefined ? (
          <p className="quiet">{texts.noTextBody}</p>
        ) : (
          <TextArea
            label={texts.body}
            hint={texts.bodyHint}
            rows={10}
            spellCheck={false}
            value={body}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
        {isOvertaken && typed !== undefined && typeof shown?.body === "string" && shown.body !== typed && (
          <TextArea
            label={texts.currentBody}
            hint={texts.currentBodyHint}
            rows={10}
            readOnly
            autoFocus
            value={shown.body}
          />
        )}
        <TextArea
          label={texts.reason}
          hint={texts.reasonHint}
          rows={2}
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        {reveal.error && <Problem of={reveal.error} onRetry={() => reveal.mutate()} />}
        {edit.error && <Problem of={edit.error} />}
        {code === "version_conflict" && (
          <span>
            <Button icon="operations" busy={reveal.isPending || reread.isPending} onClick={readAgain}>
              {texts.readAgain}
            </Button>
          </span>
        )}
        {reread.error && <Problem of={reread.error} />}
        {code === "invalid_edit" && <Checkbox label={texts.force} checked={force} onChange={setForce} />}
      </form>
    </Dialog>
  );
}
