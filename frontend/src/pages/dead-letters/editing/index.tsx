// The editor of a dead letter, loaded when one is first edited. It loads no more code afterwards: an update of the service may have
// removed it, and what was typed would be lost.

import { lazy, Suspense } from "react";
import type { EditorProps } from "./Editor";

const Loaded = lazy(() => import("./EditDialog").then(({ EditDialog }) => ({ default: EditDialog })));

export function Editing(props: EditorProps) {
  return (
    <Suspense fallback={null}>
      <Loaded {...props} />
    </Suspense>
  );
}
