import { useState } from "react";
import type { Status } from "~/api/dead-letters";
import { useWhyNot } from "~/api/session";
import { count } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import { RepairDialog, type RepairDialogProps } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import { Button, IconButton } from "~/ui";
import { ACTIONS, type Action, whyNotFor } from "./actions";
import styles from "./SelectionBar.module.css";
import type { DeadLetterList } from "./useList";

/** The bar at the bottom while rows are selected: count, selection of all matches, and actions. */
export function SelectionBar({ list, status }: { list: DeadLetterList; status: Status }) {
  const [action, setAction] = useState<Action>();
  const { selection, ids, selecting } = list;
  const { selected } = selection;
  useShortcuts(
    texts.selection,
    [
      { keys: "R", label: texts.requeueSelected, run: () => setAction("requeue") },
      { keys: "Escape", label: texts.clearSelection, run: selection.clear },
    ],
    selecting,
  );
  const target = selectionTarget(list);
  return (
    <>
      {selecting && (
        <section className={styles.bar} aria-label={texts.selected}>
          <span className={styles.words}>{target.words}</span>
          <IconButton icon="cross" label={texts.clearSelection} onClick={selection.clear} />
          {selected.kind === "some" && ids.every(selection.has) && <SelectAllMatching list={list} />}
          <Actions status={status} onChoose={setAction} />
        </section>
      )}
      {action && (
        <RepairDialog
          action={action}
          selector={target.selector}
          describe={target.describe}
          onClose={() => setAction(undefined)}
          onDone={selection.clear}
        />
      )}
    </>
  );
}

/** Returns the selection as a selector for the dialog and as text. */
function selectionTarget({ selection: { selected }, filters, matching }: DeadLetterList): {
  selector: RepairDialogProps["selector"];
  words: string;
  describe: string;
} {
  if (selected.kind === "some") {
    const ids = [...selected.ids];
    return {
      selector: { ids },
      words: texts.selectedCount(ids.length),
      describe: ids.length === 1 ? texts.oneDeadLetter(ids[0] ?? "") : texts.selectedDeadLetters(ids.length),
    };
  }
  const all = matching ? texts.all(count(matching)) : texts.allMatching;
  return {
    selector: { filter: filters },
    words: texts.matchingSelected(all),
    describe: texts.matchingDeadLetters(all),
  };
}

/** Offers to select all matches once the whole page is selected. */
function SelectAllMatching({ list: { matching, ids, selection } }: { list: DeadLetterList }) {
  if (!matching || matching.value <= ids.length) return null;
  return (
    <Button look="quiet" onClick={selection.selectEverything}>
      {texts.selectAllMatching(count(matching))}
    </Button>
  );
}

function Actions({ status, onChoose }: { status: Status; onChoose(action: Action): void }) {
  const denied = { repair: useWhyNot("repair"), purge: useWhyNot("purge") };
  return (
    <span className={styles.actions}>
      {ACTIONS.map(({ action, label, icon, permission }) => (
        <Button
          key={action}
          look={action === "requeue" ? "primary" : "plain"}
          icon={icon}
          whyNot={denied[permission] ?? whyNotFor(action, status)}
          onClick={() => onChoose(action)}
        >
          {label}
        </Button>
      ))}
    </span>
  );
}
