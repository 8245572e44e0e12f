// The editor of a dead letter, loaded when one is first edited.

import { lazy, Suspense } from "react";
import type { Letter } from "~/api/dead-letter";

export interface EditingProps {
  letter: Letter;
  onClose(): void;
  /** The edited letter was requeued. */
  onDone(): void;
}

const Loaded = lazy(() => import("./EditDialog").then(({ EditDialog }) => ({ default: EditDialog })));

export function Editing(props: EditingProps) {
  return (
    <Suspense fallback={null}>
      <Loaded {...props} />
    </Suspense>
  );
}
