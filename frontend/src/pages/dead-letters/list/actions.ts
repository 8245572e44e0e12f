import type { Status } from "~/api/dead-letters";
import type { Permission } from "~/api/session";
import type { RepairDialogProps } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import type { IconName } from "~/ui";

export type Action = RepairDialogProps["action"];

interface ActionButton {
  action: Action;
  label: string;
  icon: IconName;
  permission: Extract<Permission, "repair" | "purge">;
}

export const ACTIONS: readonly ActionButton[] = [
  { action: "requeue", label: texts.requeue, icon: "operations", permission: "repair" },
  { action: "discard", label: texts.discard, icon: "trash", permission: "repair" },
  { action: "restore", label: texts.restore, icon: "restore", permission: "repair" },
  { action: "purge", label: texts.purge, icon: "dead", permission: "purge" },
];

/** Returns why an action is not possible for dead letters of this status; undefined if it is. */
export function whyNotFor(action: Action, status: Status): string | undefined {
  if (status === "any" || REQUIRED_STATUS[action] === status) return undefined;
  if (action === "purge") return texts.onlyDiscardedPurged;
  if (action === "restore") return texts.onlyDiscardedRestored;
  if (status === "discarded") return texts.restoreFirst;
  return texts.alreadyRequeued;
}

const REQUIRED_STATUS: Record<Action, Status> = {
  requeue: "open",
  discard: "open",
  restore: "discarded",
  purge: "discarded",
};
