import { useEffect, useState } from "react";
import { type Operation, type OperationAction, useOperationAction } from "~/api/operations";
import { describeFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import * as texts from "~/texts/operations";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Pause, resume and cancel, as far as the state allows it. */
export function Actions({ of }: { of: Operation }) {
  const whyNot = useWhyNot("repair");
  const change = useOperationAction(of.id);
  const [asks, setAsks] = useState(false);
  useFocusKept(of.active);
  if (!of.active) return null;

  function act(what: OperationAction) {
    change.mutate(what, {
      onSuccess() {
        announce(texts.done(of.id, DONE[what]));
        setAsks(false);
      },
      onError: (thrown) => what !== "cancel" && announce(texts.failed(of.id, describeFailure(thrown)), "bad"),
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
      <Button icon="cross" whyNot={whyNot} onClick={() => setAsks(true)}>
        {texts.cancel}
      </Button>
      <Cancelling
        of={of}
        open={asks}
        busy={busy === "cancel"}
        failed={change.variables === "cancel" ? change.error : null}
        onClose={() => setAsks(false)}
        onCancel={() => act("cancel")}
      />
    </>
  );
}

/** Buttons that vanish, because it has ended, leave focus at the page's title. */
function useFocusKept(goesOn: boolean): void {
  useEffect(() => {
    if (goesOn) return;
    const timer = setTimeout(() => {
      if (document.activeElement === document.body) document.getElementById("page-title")?.focus();
    }, 100);
    return () => clearTimeout(timer);
  }, [goesOn]);
}

const DONE: Record<OperationAction, string> = {
  pause: texts.isPaused,
  resume: texts.isResumed,
  cancel: texts.isCancelled,
};

function Cancelling({
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
