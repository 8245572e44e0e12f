import { useState } from "react";
import type { DeadLetter, useReveal } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { writeJson } from "~/lib/json";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Badge, Button, Dialog, Problem } from "~/ui";

/** Asks before it shows what is masked, because that is written down; and masks it again. */
export function Reveal({ letter, reveal }: { letter: DeadLetter; reveal: ReturnType<typeof useReveal> }) {
  const [asking, setAsking] = useState(false);
  const may = useWhyNot("reveal");
  if (letter.revealed) {
    return (
      <>
        <Badge tone="warn" icon="eye">
          {texts.unmasked}
        </Badge>
        <Button icon="lost" onClick={reveal.reset}>
          {texts.maskAgain}
        </Button>
      </>
    );
  }
  const close = () => setAsking(false);
  return (
    <>
      <Button icon="eye" whyNot={may} onClick={() => setAsking(true)}>
        {texts.reveal}
      </Button>
      <Dialog
        open={asking}
        onClose={close}
        title={texts.revealTitle}
        description={texts.revealHint}
        actions={
          <>
            <Button onClick={close}>{common.cancel}</Button>
            <Button
              look="primary"
              icon="eye"
              busy={reveal.isPending}
              onClick={() => reveal.mutate(undefined, { onSuccess: close })}
            >
              {texts.reveal}
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
export function isMasked({
  revealed,
  body,
  headers,
  properties,
  error,
  failures,
  editions,
}: DeadLetter): boolean {
  if (revealed || body.masked || editions.some((edition) => edition.body.masked)) return true;
  const texts = [
    writeJson(headers),
    writeJson(properties),
    error.message,
    ...failures.map((failure) => failure.error.message),
  ];
  return texts.some((text) => text.includes("***"));
}
