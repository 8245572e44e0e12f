import { useEffect, useState } from "react";
import { type Deed, type Operation, useOperationDeed } from "~/api/operations";
import { inOneLine } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import { plural } from "~/lib/format";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Pause, resume and cancel, as far as the state allows it. */
export function Deeds({ of }: { of: Operation }) {
  const whyNot = useWhyNot("repair");
  const deed = useOperationDeed(of.id);
  const [asks, setAsks] = useState(false);
  useFocusKept(of.going_on);
  if (!of.going_on) return null;

  function act(what: Deed) {
    deed.mutate(what, {
      onSuccess() {
        announce(`Operation ${of.id} ${DONE[what]}.`);
        setAsks(false);
      },
      onError: (thrown) => what !== "cancel" && announce(`Operation ${of.id}: ${inOneLine(thrown)}`, "bad"),
    });
  }

  const busy = deed.isPending ? deed.variables : undefined;
  return (
    <>
      {of.state === "paused" ? (
        <Button icon="play" busy={busy === "resume"} whyNot={whyNot} onClick={() => act("resume")}>
          Resume
        </Button>
      ) : (
        <Button icon="pause" busy={busy === "pause"} whyNot={whyNot} onClick={() => act("pause")}>
          Pause
        </Button>
      )}
      <Button icon="cross" whyNot={whyNot} onClick={() => setAsks(true)}>
        Cancel
      </Button>
      <Cancelling
        of={of}
        open={asks}
        busy={busy === "cancel"}
        failed={deed.variables === "cancel" ? deed.error : null}
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

const DONE: Record<Deed, string> = {
  pause: "is paused",
  resume: "goes on",
  cancel: "is cancelled",
};

function Cancelling({
  of: { id, settled, total },
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
      title={`Cancel operation ${id}?`}
      actions={
        <>
          <Button onClick={onClose}>Let it go on</Button>
          <Button look="danger" icon="cross" busy={busy} onClick={onCancel}>
            Cancel the operation
          </Button>
        </>
      }
    >
      <p>
        What was done to {plural(settled, "dead letter")} stays done. The other{" "}
        {plural(left, "dead letter stays as it is", "dead letters stay as they are")}, and a cancelled
        operation cannot be resumed.
      </p>
      {failed && <Problem of={failed} />}
    </Dialog>
  );
}
