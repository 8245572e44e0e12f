// What the audit's actions are called, and where their targets are shown.

import type { Entry } from "~/api/audit";
import { actions } from "~/texts/audit";

export const ACTIONS: readonly string[] = Object.keys(actions);

/** What was done, as a person says it. */
export function wordsOf(action: string): string {
  return actions[action] ?? action;
}

/** The page that shows what it was done to, where there is one. */
export function pageOf({ action, target }: Pick<Entry, "action" | "target">): string | undefined {
  const operation = /^operation (\d+)$/.exec(target)?.[1];
  if (operation) return `/operations/${operation}`;
  if (/^dlq\.(note)$/.test(action)) return undefined;
  if (action.startsWith("dlq.") && /^(outbox-)?\d+$/.test(target)) return `/dead-letters/${target}`;
  const message = action === "messages.reveal" ? /^(?:outbox-)?(\d+)$/.exec(target)?.[1] : undefined;
  if (message) return `/messages/${message}`;
  return action === "pause" || action === "resume" ? "/components" : undefined;
}
