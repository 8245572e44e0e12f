import type { Status } from "~/api/dead-letters";
import type { Permission } from "~/api/session";
import type { RepairDialogProps } from "~/pages/repairs";
import type { IconName } from "~/ui";

export type Action = RepairDialogProps["action"];

interface Offered {
  action: Action;
  label: string;
  icon: IconName;
  permission: Extract<Permission, "repair" | "purge">;
}

export const ACTIONS: readonly Offered[] = [
  { action: "requeue", label: "Requeue", icon: "operations", permission: "repair" },
  { action: "discard", label: "Discard", icon: "trash", permission: "repair" },
  { action: "restore", label: "Restore", icon: "restore", permission: "repair" },
  { action: "purge", label: "Delete for good", icon: "dead", permission: "purge" },
];

/** Why an action has nothing to do with dead letters of this status; undefined where it has. */
export function whyNotFor(action: Action, status: Status, many: "one" | "many" = "many"): string | undefined {
  if (status === "any" || FITS[action] === status) return undefined;
  const [it, is] = many === "one" ? ["It", "is"] : ["These", "are"];
  if (action === "purge") return "Only what was discarded can be deleted for good.";
  if (action === "restore") return "Only what was discarded can be restored.";
  if (status === "discarded")
    return `${it} ${is} discarded: restore ${many === "one" ? "it" : "them"} first.`;
  return `${it} ${many === "one" ? "has" : "have"} been requeued; what dies again is open again.`;
}

const FITS: Record<Action, Status> = {
  requeue: "open",
  discard: "open",
  restore: "discarded",
  purge: "discarded",
};
