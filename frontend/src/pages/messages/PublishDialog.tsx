import { type FormEvent, useId, useState } from "react";
import { useBacklog } from "~/api/backlog";
import { toFailure } from "~/api/problems";
import { usePublish } from "~/api/waiting";
import * as common from "~/texts/common";
import * as texts from "~/texts/waiting";
import { announce, Button, Checkbox, Choice, Dialog, DialogClose, Problem, TextArea, TextField } from "~/ui";
import styles from "./Messages.module.css";

/** Publishes one message, for example to test a consumer. */
export function PublishDialog({ onClose }: { onClose(): void }) {
  const form = useId();
  const [routingKey, setRoutingKey] = useState("");
  const [body, setBody] = useState("{}");
  const [destination, setDestination] = useState("default");
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const { data } = useBacklog();
  const publish = usePublish(({ message_id: id }) => {
    announce(texts.sentAs(id));
    onClose();
  });
  const wrong = validate(routingKey, body);
  const schemaRejected = publish.error && toFailure(publish.error).code === "invalid_edit";

  function submit(event: FormEvent) {
    event.preventDefault();
    if (wrong || publish.isPending) return;
    publish.mutate({
      routing_key: routingKey.trim(),
      body,
      destinations: [destination],
      reason: reason.trim() || null,
      force,
    });
  }
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={texts.publishTitle}
      description={texts.publishMeaning}
      unsaved={(routingKey !== "" || body !== "{}") && !publish.isPending}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button type="submit" form={form} look="primary" busy={publish.isPending} whyNot={wrong}>
            {texts.publishButton}
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
          onChange={(event) => setRoutingKey(event.target.value)}
        />
        <TextArea
          label={texts.publishBody}
          hint={texts.bodyHint}
          rows={8}
          spellCheck={false}
          value={body}
          onChange={(event) => setBody(event.target.value)}
        />
        {data && data.destinations.length > 0 && (
          <Choice
            label={texts.publishDestination}
            value={destination}
            options={data.destinations.map(({ destination: name }) => [name, name] as const)}
            onChoose={setDestination}
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
        {publish.error && <Problem of={publish.error} />}
        {schemaRejected && <Checkbox label={texts.forcePublish} checked={force} onChange={setForce} />}
      </form>
    </Dialog>
  );
}

function validate(routingKey: string, body: string): string | undefined {
  if (!routingKey.trim()) return texts.enterRoutingKey;
  try {
    JSON.parse(body);
  } catch {
    return texts.notJson;
  }
  return undefined;
}
