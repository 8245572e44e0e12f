// What the audit's actions are called, and where their targets are shown.

import type { Entry } from "~/api/audit";
import { groupAddress } from "~/lib/url-state";
import { actions } from "~/texts/audit";

export const ACTIONS: readonly string[] = Object.keys(actions);

/** What was done, as a person says it. */
export function wordsOf(action: string): string {
  return actions[action] ?? action;
}

/** The group of failures with a common fingerprint that it was done to, where it was done to one. */
export function groupOf({ action, target, details }: Done): string | undefined {
  const ofGroups = action === "dlq.mark" || action === "dlq.policy";
  return ofGroups || (action === "dlq.note" && details.by === "fingerprint") ? target : undefined;
}

type Done = Pick<Entry, "action" | "target" | "details">;

/** The page that shows what it was done to, where there is one. */
export function pageOf(entry: Done): string | undefined {
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
