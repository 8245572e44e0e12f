import { lazy, Suspense } from "react";
import * as texts from "~/texts/editing";
import { Loading, TextField } from "~/ui";
import type { Base, Draft } from "./draft";
import styles from "./Editor.module.css";

const Changes = lazy(() => import("./Changes").then(({ Changes }) => ({ default: Changes })));

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
      <Suspense fallback={<Loading lines={6} />}>
        <Changes title={texts.body} before={base.body} after={draft.body} />
        <Changes title={texts.headers} before={base.headers} after={draft.headers} />
      </Suspense>
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
