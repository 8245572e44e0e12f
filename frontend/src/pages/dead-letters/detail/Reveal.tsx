import { useState } from "react";
import type { DeadLetter, useReveal } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { writeJson } from "~/lib/json";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Badge, Button, Dialog, Problem } from "~/ui";

/** Reveals masked values and masks them again. Asks before, because revealing is written to the audit log. */
export function Reveal({
  deadLetter,
  reveal,
}: {
  deadLetter: DeadLetter;
  reveal: ReturnType<typeof useReveal>;
}) {
  const [confirming, setConfirming] = useState(false);
  const denied = useWhyNot("reveal");
  if (deadLetter.revealed) {
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
  const close = () => setConfirming(false);
  return (
    <>
      <Button icon="eye" whyNot={denied} onClick={() => setConfirming(true)}>
        {texts.reveal}
      </Button>
      <Dialog
        open={confirming}
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

/** Whether any value is masked, or was before it was revealed. */
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
