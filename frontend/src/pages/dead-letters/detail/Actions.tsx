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
  letter: DeadLetter;
  selecting: boolean;
  onSettled(): void;
}

/** What can be done with one dead letter. */
export function Actions({ letter, selecting, onSettled }: ActionsProps) {
  const [doing, setDoing] = useState<Action | "edit">();
  const may = useWhyNot("repair");
  const operation = letter.operation_id === null ? undefined : texts.inOperation(letter.operation_id);
  const whyNot = (action: Action) => may ?? operation ?? whyNotFor(action, letter.status);
  const requeueable = whyNot("requeue") === undefined;
  useShortcuts(
    texts.deadLetterHeading,
    [
      { keys: "R", label: texts.requeueThis, run: () => setDoing("requeue") },
      { keys: "E", label: texts.editAndRequeueThis, run: () => setDoing("edit") },
    ],
    !selecting && requeueable,
  );
  const settle = () => {
    if (doing !== "restore") onSettled();
  };
  return (
    <div className={styles.actions}>
      <Button look="primary" icon="operations" whyNot={whyNot("requeue")} onClick={() => setDoing("requeue")}>
        {texts.requeue}
      </Button>
      <Button icon="edit" whyNot={whyNot("requeue")} onClick={() => setDoing("edit")}>
        {texts.editAndRequeueThis}
      </Button>
      {letter.status === "discarded" ? (
        <Button icon="restore" whyNot={whyNot("restore")} onClick={() => setDoing("restore")}>
          {texts.restore}
        </Button>
      ) : (
        <Button icon="trash" whyNot={whyNot("discard")} onClick={() => setDoing("discard")}>
          {texts.discard}
        </Button>
      )}
      <MoreMenu letter={letter} onPurge={() => setDoing("purge")} />
      {doing === "edit" && <Editing letter={letter} onClose={() => setDoing(undefined)} onDone={settle} />}
      {doing !== undefined && doing !== "edit" && (
        <RepairDialog
          action={doing}
          selector={{ ids: [letter.id] }}
          describe={texts.oneDeadLetter(letter.id)}
          onClose={() => setDoing(undefined)}
          onDone={settle}
        />
      )}
    </div>
  );
}
