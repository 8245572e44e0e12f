import { useMutation } from "@tanstack/react-query";
import type { Letter, useEditedRequeue } from "~/api/dead-letter";
import { failureOf } from "~/api/problems";
import { Button, Checkbox, Problem } from "~/ui";
import { type Base, isHidden } from "./draft";
import styles from "./Editor.module.css";
import { baseFor, baseNow } from "./reading";

/** Why the edit was not taken, and the way on from there. What was typed stays. */
export function Refusal({
  letter,
  base,
  requeue,
  force,
  onForce,
  onBase,
}: {
  letter: Letter;
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
        <strong>It was not requeued.</strong>
        <p>{data?.reason || "It may have been decided about meanwhile: look at it again."}</p>
      </div>
    );
  }
  if (!error) return null;
  const failure = failureOf(error);
  if (failure.code === "version-conflict") return <Conflict letter={letter} base={base} onBase={onBase} />;
  const misfits = failure.code === "invalid-edit" ? misfitsIn(failure.more.errors) : [];
  if (misfits.length === 0) return <Problem of={error} />;
  return (
    <div role="alert" className={styles.refusal}>
      <strong>The consumer would refuse it.</strong>
      <ul>
        {misfits.map(({ at, message }) => (
          <li key={`${at} ${message}`}>
            <code>{at}</code>: {message}
          </li>
        ))}
      </ul>
      <Checkbox label="Requeue it all the same" checked={force} onChange={onForce} />
    </div>
  );
}

function Conflict({ letter, base, onBase }: { letter: Letter; base: Base; onBase(base: Base): void }) {
  const hidden = isHidden(letter);
  const read = useMutation({
    mutationFn: () => (hidden ? baseFor(letter.id) : baseNow(letter.id)),
    gcTime: 0,
  });
  return (
    <div role="alert" className={styles.refusal}>
      <strong>Somebody else has changed it meanwhile.</strong>
      <p>
        You edited version {base.version}. What you typed stays here: compare it with what is there now, and
        requeue it then.{hidden && " It is revealed once more, which is written to the audit."}
      </p>
      {read.error && <Problem of={read.error} />}
      <span>
        <Button
          icon="operations"
          busy={read.isPending}
          onClick={() => read.mutate(undefined, { onSuccess: onBase })}
        >
          Compare with what is there now
        </Button>
      </span>
    </div>
  );
}

interface Misfit {
  at: string;
  message: string;
}

function misfitsIn(errors: unknown): readonly Misfit[] {
  return Array.isArray(errors) ? errors.filter(isMisfit) : [];
}

function isMisfit(error: unknown): error is Misfit {
  return typeof error === "object" && error !== null && "at" in error && "message" in error;
}
