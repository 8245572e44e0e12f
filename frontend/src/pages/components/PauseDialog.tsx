import { type FormEvent, useId, useState } from "react";
import type { Component } from "~/api/components";
import { nameOf, type Scope, type Target, usePause } from "~/api/pauses";
import { plural } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";
import { announce, Button, Choice, Dialog, DialogClose, Problem, TextArea, TextField } from "~/ui";
import styles from "./Components.module.css";
import { ENDS, type End, endOf } from "./until";

const SCOPES = [
  ["relay", "Relays"],
  ["worker", "Workers"],
  ["queue", "A queue"],
] as const;

const MEANING: Record<Scope, string> = {
  relay: "It publishes nothing new; messages wait in the outbox.",
  worker: "It takes no new messages; they wait in their queues, or go to other workers.",
  queue: "No worker takes new messages from it; they wait in the queue.",
};

/** Asks what is to take nothing new, why, and for how long. */
export function PauseDialog({
  target,
  components,
  onClose,
}: {
  target: Target;
  components: readonly Component[];
  onClose(): void;
}) {
  const [scope, setScope] = useState(target.scope);
  const [name, setName] = useState(target.name);
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState<End>("");
  const [at, setAt] = useState("");
  const { zone } = usePreferences();
  const form = useId();
  const pause = usePause((paused) => {
    announce(`Paused ${nameOf(paused)}.`);
    onClose();
  });
  const wanted = { scope, name: name.trim() };
  const wrong = whatIsWrong(wanted, end, at, zone);

  function submit(event: FormEvent) {
    event.preventDefault();
    const until = endOf(end, at, zone);
    if (wrong || until === undefined || pause.isPending) return;
    pause.mutate({ ...wanted, reason: reason.trim() || null, until: keptFor(pause.variables, end, until) });
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title="Pause"
      description={`${MEANING[scope]} What is in hand is finished.`}
      unsaved={reason !== "" && !pause.isPending}
      actions={
        <>
          <DialogClose>Cancel</DialogClose>
          <Button type="submit" form={form} look="primary" icon="pause" busy={pause.isPending} whyNot={wrong}>
            Pause {wrong ? "" : nameOf(wanted)}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <Choice<Scope> label="What" value={scope} onChoose={setScope} options={SCOPES} />
        <Name scope={scope} name={name} components={components} onType={setName} />
        <TextArea
          label="Reason"
          hint="For those who find it paused, and for the audit."
          rows={2}
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        <Choice<End> label="It ends" value={end} onChoose={setEnd} options={ENDS} />
        {end === "at" && (
          <TextField
            label={`Time, ${zone === "utc" ? "UTC" : "local"}`}
            type="datetime-local"
            value={at}
            onChange={(event) => setAt(event.target.value)}
          />
        )}
        {pause.error && <Problem of={pause.error} />}
      </form>
    </Dialog>
  );
}

function Name({
  scope,
  name,
  components,
  onType,
}: {
  scope: Scope;
  name: string;
  components: readonly Component[];
  onType(name: string): void;
}) {
  const id = useId();
  return (
    <>
      <TextField
        label={scope === "queue" ? "Queue" : `Name of the ${scope}`}
        hint={concerned(components, scope, name.trim())}
        placeholder={scope === "queue" ? "" : `Empty for all ${scope}s`}
        list={id}
        autoComplete="off"
        spellCheck={false}
        value={name}
        onChange={(event) => onType(event.target.value)}
      />
      <datalist id={id}>
        {namesOf(components, scope).map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
    </>
  );
}

function living(components: readonly Component[]): readonly Component[] {
  return components.filter(({ condition }) => condition === "alive" || condition === "late");
}

/** Names that may be meant: of those that live, and of the queues that they consume. */
export function namesOf(components: readonly Component[], scope: Scope): readonly string[] {
  const names =
    scope === "queue"
      ? components.flatMap(({ consumers }) => consumers.map(({ queue }) => queue))
      : living(components).flatMap((one) => (one.kind === scope ? [one.name] : []));
  return [...new Set(names)].sort();
}

/** Whom a pause would concern now. */
export function concerned(components: readonly Component[], scope: Scope, name: string): string {
  if (scope === "queue" && !name) return "The queue that is to be left alone.";
  const those = living(components).filter((one) =>
    scope === "queue"
      ? one.consumers.some(({ queue }) => queue === name)
      : one.kind === scope && (name === "" || one.name === name),
  );
  const kind = scope === "queue" ? "worker" : scope;
  if (those.length === 0) return `This concerns nobody who lives now; it holds for whoever starts.`;
  return `This concerns ${plural(those.length, kind)}: ${those.map((one) => one.name).join(", ")}.`;
}

function whatIsWrong(wanted: Target, end: End, at: string, zone: "local" | "utc"): string | undefined {
  if (wanted.scope === "queue" && !wanted.name) return "Say which queue.";
  if (endOf(end, at, zone) === undefined) return "Say a time that lies ahead.";
  return undefined;
}

/** Tried again after a failure, a pause of an hour still ends when it did at first: it is the same request. */
function keptFor(
  before: { until: string | null } | undefined,
  end: End,
  until: string | null,
): string | null {
  return before?.until && end !== "at" && until ? before.until : until;
}
