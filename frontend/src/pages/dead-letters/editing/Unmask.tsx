import { useMutation } from "@tanstack/react-query";
import type { Letter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { size } from "~/lib/format";
import { Button, Problem } from "~/ui";
import type { Base } from "./draft";
import styles from "./Editor.module.css";
import { baseFor } from "./reading";

/** What is hidden has to be seen to be edited; which is written down, and therefore asked for. */
export function Unmask({
  letter,
  onCancel,
  onRead,
}: {
  letter: Letter;
  onCancel(): void;
  onRead(base: Base): void;
}) {
  const may = useWhyNot("reveal");
  const { mutate, isPending, error } = useMutation({ mutationFn: () => baseFor(letter.id), gcTime: 0 });
  return (
    <div className={styles.steps}>
      <p>
        {letter.body.truncated
          ? `The body has ${size(letter.body.size)}, more than is shown here. To edit it, all of it is fetched as it is.`
          : "Values of this dead letter are masked. To edit it you have to see it as it is, or the masks would be sent."}{" "}
        That you looked is written to the audit, under your name.
      </p>
      {error && <Problem of={error} />}
      <div className={styles.buttons}>
        <Button onClick={onCancel}>Cancel</Button>
        <Button
          look="primary"
          icon="eye"
          whyNot={may}
          busy={isPending}
          onClick={() => mutate(undefined, { onSuccess: onRead })}
        >
          Reveal and edit
        </Button>
      </div>
    </div>
  );
}
