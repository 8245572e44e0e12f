// Props of the repair dialog.

import type { Schemas } from "~/api/client";
import type { Action, Selector } from "~/api/repairs";

export interface RepairDialogProps {
  action: Action;
  selector: Selector;
  /** The selection as text: "12 selected dead letters". */
  describe: string;
  /** Edited body or headers, for requeueing one dead letter. */
  edit?: Schemas["EditRequest"] | undefined;
  onClose(): void;
  /** Called when a dead letter was changed, or an operation was started. */
  onDone?: (() => void) | undefined;
}
