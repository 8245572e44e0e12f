// What the dialog is opened with.

import type { Schemas } from "~/api/client";
import type { Action, Selector } from "~/api/repairs";

export interface RepairDialogProps {
  action: Action;
  selector: Selector;
  /** What is meant, as a person reads it: "12 selected dead letters". */
  describe: string;
  /** Another body or other headers, for one dead letter that is requeued. */
  edit?: Schemas["EditRequest"] | undefined;
  onClose(): void;
  /** It was done, or an operation was made of it. */
  onDone?: (() => void) | undefined;
}
