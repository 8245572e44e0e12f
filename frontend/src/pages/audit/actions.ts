// What the audit's actions are called, and where their targets are shown.

import type { Entry } from "~/api/audit";

const WORDS: Record<string, string> = {
  "dlq.requeue": "Requeued",
  "dlq.discard": "Discarded",
  "dlq.restore": "Restored",
  "dlq.purge": "Deleted for good",
  "dlq.note": "Noted something",
  "dlq.reveal": "Revealed masked values",
  "dlq.download": "Downloaded the body",
  "messages.reveal": "Revealed masked values",
  "operations.pause": "Paused an operation",
  "operations.resume": "Resumed an operation",
  "operations.cancel": "Cancelled an operation",
  pause: "Paused",
  resume: "Resumed",
  "session.begin": "Logged in",
  "session.end": "Logged out",
  "audit.list": "Read the audit",
};

export const ACTIONS: readonly string[] = Object.keys(WORDS);

/** What was done, as a person says it. */
export function wordsOf(action: string): string {
  return WORDS[action] ?? action;
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
