// Labels of the audit log's actions, and links to their targets.

import type { Entry } from "~/api/audit";
import { groupAddress } from "~/lib/url-state";
import { actions } from "~/texts/audit";

export const ACTIONS: readonly string[] = Object.keys(actions);

/** Returns the label of an action. Unknown actions are shown as they are. */
export function actionLabel(action: string): string {
  return actions[action] ?? action;
}

/** Returns the ID of the failure group that an entry is about, if any. Notes can also be about queues. */
export function groupOf({ action, target, details }: EntrySubject): string | undefined {
  const ofGroups = action === "dlq.mark" || action === "dlq.policy";
  return ofGroups || (action === "dlq.note" && details.by === "fingerprint") ? target : undefined;
}

type EntrySubject = Pick<Entry, "action" | "target" | "details">;

/** Returns the page that shows the target of an entry, if there is one. */
export function pageOf(entry: EntrySubject): string | undefined {
  const { action, target } = entry;
  const operation = /^operation (\d+)$/.exec(target)?.[1];
  if (operation) return `/operations/${operation}`;
  const group = groupOf(entry);
  if (group) return groupAddress(group);
  if (action === "dlq.note") return undefined;
  if (action.startsWith("dlq.") && /^(outbox-)?\d+$/.test(target)) return `/dead-letters/${target}`;
  const message = action === "messages.reveal" ? /^(?:outbox-)?(\d+)$/.exec(target)?.[1] : undefined;
  if (message) return `/messages/${message}`;
  return action === "pause" || action === "resume" ? "/components" : undefined;
}
