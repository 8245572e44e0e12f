// The repair dialog, loaded when it is first opened.

import { lazy, Suspense } from "react";
import type { RepairDialogProps } from "./types";

export type { RepairDialogProps } from "./types";

const Loaded = lazy(() => import("./RepairDialog").then(({ RepairDialog }) => ({ default: RepairDialog })));

export function RepairDialog(props: RepairDialogProps) {
  return (
    <Suspense fallback={null}>
      <Loaded {...props} />
    </Suspense>
  );
}
