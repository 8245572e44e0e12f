import { useState } from "react";
import type { DeadLetter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { useShortcuts } from "~/lib/keyboard";
import { RepairDialog } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import { Button } from "~/ui";
import { Editing } from "../editing";
import { type Action, whyNotFor } from "../list/actions";
import styles from "./Actions.module.css";
import { MoreMenu } from "./MoreMenu";

export interface ActionsProps {
  deadLetter: DeadLetter;
  selecting: boolean;
  onSettled(): void;
}

/** Actions on one dead letter. */
export function Actions({ deadLetter, selecting, onSettled }: ActionsProps) {
  const [dialog, setDialog] = useState<Action | "edit">();
  const denied = useWhyNot("repair");
  const operation = deadLetter.operation_id === null ? undefined : texts.inOperation(deadLetter.operation_id);
  const whyNot = (action: Action) => denied ?? operation ?? whyNotFor(action, deadLetter.status);
  const requeueable = whyNot("requeue") === undefined;
  useShortcuts(
    texts.deadLetterHeading,
    [
      { keys: "R", label: texts.requeueThis, run: () => setDialog("requeue") },
      { keys: "E", label: texts.editAndRequeueThis, run: () => setDialog("edit") },
    ],
    !selecting && requeueable,
  );
  const settle = () => {
    if (dialog !== "restore") onSettled();
  };
  return (
    <div className={styles.actions}>
      <Button
        look="primary"
        icon="operations"
        whyNot={whyNot("requeue")}
        onClick={() => setDialog("requeue")}
      >
        {texts.requeue}
      </Button>
      <Button icon="edit" whyNot={whyNot("requeue")} onClick={() => setDialog("edit")}>
        {texts.editAndRequeueThis}
      </Button>
      {deadLetter.status === "discarded" ? (
        <Button icon="restore" whyNot={whyNot("restore")} onClick={() => setDialog("restore")}>
          {texts.restore}
        </Button>
      ) : (
        <Button icon="trash" whyNot={whyNot("discard")} onClick={() => setDialog("discard")}>
          {texts.discard}
        </Button>
      )}
      <MoreMenu deadLetter={deadLetter} onPurge={() => setDialog("purge")} />
      {dialog === "edit" && (
        <Editing deadLetter={deadLetter} onClose={() => setDialog(undefined)} onDone={settle} />
      )}
      {dialog !== undefined && dialog !== "edit" && (
        <RepairDialog
          action={dialog}
          selector={{ ids: [deadLetter.id] }}
          describe={texts.oneDeadLetter(deadLetter.id)}
          onClose={() => setDialog(undefined)}
          onDone={settle}
        />
      )}
    </div>
  );
}
