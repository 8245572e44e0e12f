// The editor of a dead letter, loaded when one is first edited.

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
