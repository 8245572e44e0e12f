import { useState } from "react";
import type { Letter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { useShortcuts } from "~/lib/keyboard";
import { RepairDialog } from "~/pages/repairs";
import { Button } from "~/ui";
import { Editing } from "../editing";
import { type Action, whyNotFor } from "../list/actions";
import styles from "./Actions.module.css";
import { More } from "./More";

export interface ActionsProps {
  letter: Letter;
  selecting: boolean;
  onSettled(): void;
}

/** What can be done with one dead letter. */
export function Actions({ letter, selecting, onSettled }: ActionsProps) {
  const [doing, setDoing] = useState<Action | "edit">();
  const may = useWhyNot("repair");
  const operation = letter.operation_id === null ? undefined : `It is in operation ${letter.operation_id}.`;
  const whyNot = (action: Action) => may ?? operation ?? whyNotFor(action, letter.status, "one");
  const requeueable = whyNot("requeue") === undefined;
  useShortcuts(
    "Dead letter",
    [
      { keys: "R", label: "Requeue it", run: () => setDoing("requeue") },
      { keys: "E", label: "Edit and requeue it", run: () => setDoing("edit") },
    ],
    !selecting && requeueable,
  );
  const settle = () => {
    if (doing !== "restore") onSettled();
  };
  return (
    <div className={styles.actions}>
      <Button look="primary" icon="operations" whyNot={whyNot("requeue")} onClick={() => setDoing("requeue")}>
        Requeue
      </Button>
      <Button icon="edit" whyNot={whyNot("requeue")} onClick={() => setDoing("edit")}>
        Edit and requeue
      </Button>
      {letter.status === "discarded" ? (
        <Button icon="restore" whyNot={whyNot("restore")} onClick={() => setDoing("restore")}>
          Restore
        </Button>
      ) : (
        <Button icon="trash" whyNot={whyNot("discard")} onClick={() => setDoing("discard")}>
          Discard
        </Button>
      )}
      <More letter={letter} onPurge={() => setDoing("purge")} />
      {doing === "edit" && <Editing letter={letter} onClose={() => setDoing(undefined)} onDone={settle} />}
      {doing !== undefined && doing !== "edit" && (
        <RepairDialog
          action={doing}
          selector={{ ids: [letter.id] }}
          describe={`dead letter ${letter.id}`}
          onClose={() => setDoing(undefined)}
          onDone={settle}
        />
      )}
    </div>
  );
}
