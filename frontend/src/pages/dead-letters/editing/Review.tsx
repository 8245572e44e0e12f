import * as texts from "~/texts/editing";
import { TextField } from "~/ui";
import { Changes } from "./Changes";
import type { Base, Draft } from "./draft";
import styles from "./Editor.module.css";

/** The changes to body and headers, and the reason for them. */
export function Review({
  base,
  draft,
  reason,
  onReason,
}: {
  base: Base;
  draft: Draft;
  reason: string;
  onReason(reason: string): void;
}) {
  return (
    <div className={styles.steps}>
      <Changes title={texts.body} before={base.body} after={draft.body} />
      <Changes title={texts.headers} before={base.headers} after={draft.headers} />
      <TextField
        label={texts.reason}
        hint={texts.reasonHint}
        maxLength={2000}
        value={reason}
        onChange={(event) => onReason(event.target.value)}
      />
    </div>
  );
}
