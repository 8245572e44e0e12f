import { useMutation } from "@tanstack/react-query";
import type { DeadLetter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { size } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/editing";
import { Button, Problem } from "~/ui";
import { baseFor } from "./base";
import type { Base } from "./draft";
import styles from "./Editor.module.css";

/** What is hidden has to be seen to be edited; which is written down, and therefore asked for. */
export function RevealStep({
  letter,
  onCancel,
  onRead,
}: {
  letter: DeadLetter;
  onCancel(): void;
  onRead(base: Base): void;
}) {
  const may = useWhyNot("reveal");
  const { mutate, isPending, error } = useMutation({ mutationFn: () => baseFor(letter.id), gcTime: 0 });
  return (
    <div className={styles.steps}>
      <p>{texts.revealHint(letter.body.truncated, size(letter.body.size))}</p>
      {error && <Problem of={error} />}
      <div className={styles.buttons}>
        <Button onClick={onCancel}>{common.cancel}</Button>
        <Button
          look="primary"
          icon="eye"
          whyNot={may}
          busy={isPending}
          onClick={() => mutate(undefined, { onSuccess: onRead })}
        >
          {texts.revealAndEdit}
        </Button>
      </div>
    </div>
  );
}
