import { useState } from "react";
import type { Letter, useReveal } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { writeJson } from "~/lib/json-text";
import { Badge, Button, Dialog, Problem } from "~/ui";

/** Asks before it shows what is masked, because that is written down; and masks it again. */
export function Reveal({ letter, reveal }: { letter: Letter; reveal: ReturnType<typeof useReveal> }) {
  const [asking, setAsking] = useState(false);
  const may = useWhyNot("reveal");
  if (letter.revealed) {
    return (
      <>
        <Badge tone="warn" icon="eye">
          unmasked
        </Badge>
        <Button icon="lost" onClick={reveal.reset}>
          Mask again
        </Button>
      </>
    );
  }
  const close = () => setAsking(false);
  return (
    <>
      <Button icon="eye" whyNot={may} onClick={() => setAsking(true)}>
        Reveal
      </Button>
      <Dialog
        open={asking}
        onClose={close}
        title="Reveal what is masked?"
        description="You will see body, headers and errors of this dead letter as they are. That you looked is written to the audit, under your name, before anything is shown."
        actions={
          <>
            <Button onClick={close}>Cancel</Button>
            <Button
              look="primary"
              icon="eye"
              busy={reveal.isPending}
              onClick={() => reveal.mutate(undefined, { onSuccess: close })}
            >
              Reveal
            </Button>
          </>
        }
      >
        {reveal.error && <Problem of={reveal.error} />}
      </Dialog>
    </>
  );
}

/** Whether anything of it is hidden, or was before it was revealed. */
export function isMasked({ revealed, body, headers, properties, error, trail, editions }: Letter): boolean {
  if (revealed || body.masked || editions.some((edition) => edition.body.masked)) return true;
  const texts = [
    writeJson(headers),
    writeJson(properties),
    error.message,
    ...trail.map(({ message }) => message),
  ];
  return texts.some((text) => text.includes("***"));
}
