import { useMutation } from "@tanstack/react-query";
import type { DeadLetter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { size } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/editing";
import { Button, Problem } from "~/ui";
import { howToRead } from "~/ui/payload";
import { loadRevealedBase } from "./base";
import type { Base } from "./draft";
import styles from "./Editor.module.css";

/** Asks before revealing masked values for editing, because that is written to the audit log. */
export function RevealStep({
  deadLetter,
  onCancel,
  onRead,
}: {
  deadLetter: DeadLetter;
  onCancel(): void;
  onRead(base: Base): void;
}) {
  const { access, truncated, size: bytes } = deadLetter.body;
  const role = useWhyNot("reveal");
  const noAccess = access?.can_reveal === false ? texts.cannotEdit(howToRead(access)) : undefined;
  const denied = noAccess ?? role;
  const hint = noAccess ?? (access ? texts.revealSealedHint : texts.revealHint(truncated, size(bytes)));
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => loadRevealedBase(deadLetter.id),
    gcTime: 0,
  });
  return (
    <div className={styles.steps}>
      <p>{hint}</p>
      {error && <Problem of={error} />}
      <div className={styles.buttons}>
        <Button onClick={onCancel}>{common.cancel}</Button>
        <Button
          look="primary"
          icon="eye"
          whyNot={denied}
          busy={isPending}
          onClick={() => mutate(undefined, { onSuccess: onRead })}
        >
          {texts.revealAndEdit}
        </Button>
      </div>
    </div>
  );
}
