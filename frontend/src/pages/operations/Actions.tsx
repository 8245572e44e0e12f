import { useEffect, useState } from "react";
import { type Operation, type OperationAction, useOperationAction } from "~/api/operations";
import { describeFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import * as texts from "~/texts/operations";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Pause, resume and cancel, as the state allows. */
export function Actions({ of }: { of: Operation }) {
  const whyNot = useWhyNot("repair");
  const change = useOperationAction(of.id);
  const [confirming, setConfirming] = useState(false);
  useFocusTitleAtEnd(of.active);
  if (!of.active) return null;

  function act(action: OperationAction) {
    change.mutate(action, {
      onSuccess() {
        announce(texts.done(of.id, DONE_TEXTS[action]));
        setConfirming(false);
      },
      onError: (thrown) =>
        action !== "cancel" && announce(texts.failed(of.id, describeFailure(thrown)), "bad"),
    });
  }

  const busy = change.isPending ? change.variables : undefined;
  return (
    <>
      {of.state === "paused" ? (
        <Button icon="play" busy={busy === "resume"} whyNot={whyNot} onClick={() => act("resume")}>
          {texts.resume}
        </Button>
      ) : (
        <Button icon="pause" busy={busy === "pause"} whyNot={whyNot} onClick={() => act("pause")}>
          {texts.pause}
        </Button>
      )}
      <Button icon="cross" whyNot={whyNot} onClick={() => setConfirming(true)}>
        {texts.cancel}
      </Button>
      <CancelDialog
        of={of}
        open={confirming}
        busy={busy === "cancel"}
        failed={change.variables === "cancel" ? change.error : null}
        onClose={() => setConfirming(false)}
        onCancel={() => act("cancel")}
      />
    </>
  );
}

/** Moves focus to the page title when the operation ends, because the buttons disappear. */
function useFocusTitleAtEnd(active: boolean): void {
  useEffect(() => {
    if (active) return;
    const timer = setTimeout(() => {
      if (document.activeElement === document.body) document.getElementById("page-title")?.focus();
    }, 100);
    return () => clearTimeout(timer);
  }, [active]);
}

const DONE_TEXTS: Record<OperationAction, string> = {
  pause: texts.isPaused,
  resume: texts.isResumed,
  cancel: texts.isCancelled,
};

function CancelDialog({
  of: { id, settled_count: settled, item_count: total },
  open,
  busy,
  failed,
  onClose,
  onCancel,
}: {
  of: Operation;
  open: boolean;
  busy: boolean;
  failed: Error | null;
  onClose(): void;
  onCancel(): void;
}) {
  const left = total - settled;
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={texts.cancelTitle(id)}
      actions={
        <>
          <Button onClick={onClose}>{texts.keepRunning}</Button>
          <Button look="danger" icon="cross" busy={busy} onClick={onCancel}>
            {texts.cancelOperation}
          </Button>
        </>
      }
    >
      <p>{texts.cancelHint(settled, left)}</p>
      {failed && <Problem of={failed} />}
    </Dialog>
  );
}
