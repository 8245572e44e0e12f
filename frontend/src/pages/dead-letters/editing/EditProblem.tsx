import { useMutation } from "@tanstack/react-query";
import type { DeadLetter, useEditedRequeue } from "~/api/dead-letter";
import { toFailure } from "~/api/problems";
import * as texts from "~/texts/editing";
import { Button, Checkbox, Problem } from "~/ui";
import { loadBase, loadRevealedBase } from "./base";
import { type Base, isHidden } from "./draft";
import styles from "./Editor.module.css";

/** Why the edit was rejected, and how to continue. The user's input is kept. */
export function EditProblem({
  deadLetter,
  base,
  requeue,
  force,
  onForce,
  onBase,
}: {
  deadLetter: DeadLetter;
  base: Base;
  requeue: ReturnType<typeof useEditedRequeue>;
  force: boolean;
  onForce(force: boolean): void;
  onBase(base: Base): void;
}) {
  const { error, data } = requeue;
  if (data !== undefined && data?.outcome !== "requeued") {
    return (
      <div role="alert" className={styles.problem}>
        <strong>{texts.notRequeued}</strong>
        <p>{data?.reason || texts.changedMeanwhile}</p>
      </div>
    );
  }
  if (!error) return null;
  const failure = toFailure(error);
  if (failure.code === "version_conflict")
    return <Conflict deadLetter={deadLetter} base={base} onBase={onBase} />;
  const violations = failure.code === "invalid_edit" ? schemaViolationsIn(failure.more.errors) : [];
  if (violations.length === 0) return <Problem of={error} />;
  return (
    <div role="alert" className={styles.problem}>
      <strong>{texts.schemaViolation}</strong>
      <ul>
        {violations.map(({ at, message }) => (
          <li key={`${at} ${message}`}>
            <code>{at}</code>: {message}
          </li>
        ))}
      </ul>
      <Checkbox label={texts.requeueAnyway} checked={force} onChange={onForce} />
    </div>
  );
}

function Conflict({
  deadLetter,
  base,
  onBase,
}: {
  deadLetter: DeadLetter;
  base: Base;
  onBase(base: Base): void;
}) {
  const hidden = isHidden(deadLetter);
  const read = useMutation({
    mutationFn: () => (hidden ? loadRevealedBase(deadLetter.id) : loadBase(deadLetter.id)),
    gcTime: 0,
  });
  return (
    <div role="alert" className={styles.problem}>
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

interface SchemaViolation {
  at: string;
  message: string;
}

function schemaViolationsIn(errors: unknown): readonly SchemaViolation[] {
  return Array.isArray(errors) ? errors.filter(isSchemaViolation) : [];
}

function isSchemaViolation(error: unknown): error is SchemaViolation {
  return typeof error === "object" && error !== null && "at" in error && "message" in error;
}
