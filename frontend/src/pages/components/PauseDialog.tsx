import { type FormEvent, useId, useState } from "react";
import type { Component } from "~/api/components";
import { describeTarget, type Scope, type Target, usePause } from "~/api/pauses";
import { usePreferences } from "~/lib/preferences";
import * as common from "~/texts/common";
import * as texts from "~/texts/components";
import { announce, Button, Choice, Dialog, DialogClose, Problem, TextArea, TextField } from "~/ui";
import styles from "./Components.module.css";
import { ENDS, type End, endOf } from "./pause-end";

const SCOPES = [
  ["", texts.chooseScope],
  ["relay", texts.relays],
  ["worker", texts.workers],
  ["queue", texts.aQueue],
] as const;

const MEANING: Record<Scope | "", string> = {
  "": texts.scopeMeaning,
  relay: texts.relayMeaning,
  worker: texts.workerMeaning,
  queue: texts.queueMeaning,
};

/** Asks what to pause, why, and for how long. `target` preselects what to pause. */
export function PauseDialog({
  target,
  components,
  onClose,
}: {
  target?: Target | undefined;
  components: readonly Component[];
  onClose(): void;
}) {
  const [scope, setScope] = useState<Scope | "">(target?.scope ?? "");
  const [name, setName] = useState(target?.name ?? "");
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState<End>("");
  const [at, setAt] = useState("");
  const { zone } = usePreferences();
  const form = useId();
  const pause = usePause((paused) => {
    announce(texts.paused(describeTarget(paused)));
    onClose();
  });
  const chosen = scope === "" ? undefined : { scope, name: name.trim() };
  const wrong = validate(chosen, end, at, zone);

  function submit(event: FormEvent) {
    event.preventDefault();
    const until = endOf(end, at, zone);
    if (!chosen || wrong || until === undefined || pause.isPending) return;
    pause.mutate({
      ...chosen,
      reason: reason.trim() || null,
      expires_at: expiryOf(pause.variables, end, until),
    });
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.pause}
      description={scope === "" ? MEANING[scope] : texts.withInFlight(MEANING[scope])}
      unsaved={reason !== "" && !pause.isPending}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button type="submit" form={form} look="primary" icon="pause" busy={pause.isPending} whyNot={wrong}>
            {texts.pauseTarget(wrong || !chosen ? "" : describeTarget(chosen))}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.form} onSubmit={submit}>
        <Choice<Scope | ""> label={texts.scope} value={scope} onChoose={setScope} options={SCOPES} />
        {scope !== "" && <Name scope={scope} name={name} components={components} onType={setName} />}
        <TextArea
          label={texts.reason}
          hint={texts.reasonHint}
          rows={2}
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        <Choice<End>
          label={texts.ends}
          value={end}
          onChoose={(chosen) => {
            setEnd(chosen);
            pause.reset();
          }}
          options={ENDS}
        />
        {end === "at" && (
          <TextField
            label={texts.endTime(zone === "utc" ? "UTC" : "local")}
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
        label={scope === "queue" ? texts.queue : texts.nameOfScope(scope)}
        hint={affectedBy(components, scope, name.trim())}
        placeholder={scope === "queue" ? "" : texts.emptyForAll(scope)}
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

function aliveComponents(components: readonly Component[]): readonly Component[] {
  return components.filter(({ status }) => status === "alive" || status === "late");
}

/** Returns the names to suggest: those of alive components, or of the queues that they consume. */
export function namesOf(components: readonly Component[], scope: Scope): readonly string[] {
  const names =
    scope === "queue"
      ? components.flatMap(({ consumers }) => consumers.map(({ queue }) => queue))
      : aliveComponents(components).flatMap((one) => (one.kind === scope ? [one.name] : []));
  return [...new Set(names)].sort();
}

/** Describes which components a pause would affect now. */
export function affectedBy(components: readonly Component[], scope: Scope, name: string): string {
  if (scope === "queue" && !name) return texts.queueHint;
  const affected = aliveComponents(components).filter((one) =>
    scope === "queue"
      ? one.consumers.some(({ queue }) => queue === name)
      : one.kind === scope && (name === "" || one.name === name),
  );
  const kind = scope === "queue" ? "worker" : scope;
  if (affected.length === 0) return texts.appliesLater;
  return texts.appliesTo(affected.length, kind, affected.map((one) => one.name).join(", "));
}

function validate(
  target: Target | undefined,
  end: End,
  at: string,
  zone: "local" | "utc",
): string | undefined {
  if (!target) return texts.scopeRequired;
  if (target.scope === "queue" && !target.name) return texts.queueRequired;
  if (endOf(end, at, zone) === undefined) return texts.futureRequired;
  return undefined;
}

/** Returns the end of the pause. A retry keeps the end of the first attempt, because it has to be the same request. */
function expiryOf(
  before: { expires_at: string | null } | undefined,
  end: End,
  until: string | null,
): string | null {
  return before?.expires_at && end !== "at" && until ? before.expires_at : until;
}
