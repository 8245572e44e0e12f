import { useMutation } from "@tanstack/react-query";
import type { DeadLetter, useEditedRequeue } from "~/api/dead-letter";
import { toFailure } from "~/api/problems";
import * as texts from "~/texts/editing";
import { Button, Checkbox, Problem } from "~/ui";
import { baseFor, baseNow } from "./base";
import { type Base, isHidden } from "./draft";
import styles from "./Editor.module.css";

/** Why the edit was not taken, and the way on from there. What was typed stays. */
export function EditProblem({
  letter,
  base,
  requeue,
  force,
  onForce,
  onBase,
}: {
  letter: DeadLetter;
  base: Base;
  requeue: ReturnType<typeof useEditedRequeue>;
  force: boolean;
  onForce(force: boolean): void;
  onBase(base: Base): void;
}) {
  const { error, data } = requeue;
  if (data !== undefined && data?.outcome !== "requeued") {
    return (
      <div role="alert" className={styles.refusal}>
        <strong>{texts.notRequeued}</strong>
        <p>{data?.reason || texts.changedMeanwhile}</p>
      </div>
    );
  }
  if (!error) return null;
  const failure = toFailure(error);
  if (failure.code === "version_conflict") return <Conflict letter={letter} base={base} onBase={onBase} />;
  const misfits = failure.code === "invalid_edit" ? schemaViolationsIn(failure.more.errors) : [];
  if (misfits.length === 0) return <Problem of={error} />;
  return (
    <div role="alert" className={styles.refusal}>
      <strong>{texts.schemaViolation}</strong>
      <ul>
        {misfits.map(({ at, message }) => (
          <li key={`${at} ${message}`}>
            <code>{at}</code>: {message}
          </li>
        ))}
      </ul>
      <Checkbox label={texts.requeueAnyway} checked={force} onChange={onForce} />
    </div>
  );
}

function Conflict({ letter, base, onBase }: { letter: DeadLetter; base: Base; onBase(base: Base): void }) {
  const hidden = isHidden(letter);
  const read = useMutation({
    mutationFn: () => (hidden ? baseFor(letter.id) : baseNow(letter.id)),
    gcTime: 0,
  });
  return (
    <div role="alert" className={styles.refusal}>
      <strong>{texts.conflict}</strong>
      <p>{texts.conflictHint(base.version, hidden)}</p>
      {read.error && <Problem of={read.error} />}
      <span>
        <Button
          icon="operations"
          busy={read.isPending}
          onClick={() => read.mutate(undefined, { onSuccess: onBase })}
        >
          {texts.compare}
        </Button>
      </span>
    </div>
  );
}

interface Misfit {
  at: string;
  message: string;
}

function schemaViolationsIn(errors: unknown): readonly Misfit[] {
  return Array.isArray(errors) ? errors.filter(isMisfit) : [];
}

function isMisfit(error: unknown): error is Misfit {
  return typeof error === "object" && error !== null && "at" in error && "message" in error;
}
