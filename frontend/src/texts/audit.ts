// Texts of the audit log.

import { plural } from "~/lib/format";

export const title = "Audit log";
export const forbidden = "You need the operator role to read the audit log.";
export const filter = "Filter the audit log";
export const fresh = (count: number) => `${plural(count, "new entry", "new entries")} · Show`;
export const empty = "No entries.";
export const emptyHint =
  "Logins, repairs, pauses and revealed values are recorded here, including failed and denied attempts.";
export const noMatch = "No entries match the filters.";
export const noMatchHint = "Actor, action and target must match exactly. Remove a filter to see more.";
export const actor = "Actor";
export const actorHint = "The full name.";
export const action = "Action";
export const actionHint = "For example dlq.requeue.";
export const outcome = "Outcome";
export const target = "Target";
export const targetHint = "The full target, for example 17 or operation 3.";
export const after = "After";
export const before = "Before";
export const next = "Next entry";
export const previous = "Previous entry";
export const close = "Close the details";
export const time = "Time";
export const done = "done";
export const reason = "Reason";
export const address = "Address";
export const request = "Request";
export const copyRequest = "Copy request ID";
export const clientAddress = "Reported by client";
export const entry = "Entry";
export const byActor = (actor: string) => `All entries by ${actor}`;
export const onTarget = (target: string) => `All entries for ${target}`;

/** Names of the actions in the audit log. */
export const actions: Record<string, string> = {
  "dlq.requeue": "Requeued",
  "dlq.discard": "Discarded",
  "dlq.restore": "Restored",
  "dlq.purge": "Deleted permanently",
  "access.end": "Ended a session",
  "access.revoke": "Revoked a token",
  "alerts.test": "Sent a test alert",
  "dlq.mark": "Marked a group",
  "dlq.policy": "Set a requeue policy",
  "dlq.note": "Edited a note",
  "dlq.reveal": "Revealed masked values",
  "dlq.download": "Downloaded a body",
  "messages.reveal": "Revealed masked values",
  "messages.cancel": "Cancelled messages",
  "messages.send_now": "Sent messages now",
  "messages.reschedule": "Rescheduled messages",
  "messages.edit": "Edited a message",
  "messages.publish": "Published a message",
  "deliveries.reveal": "Revealed masked values",
  "deliveries.retry": "Retried deliveries now",
  "deliveries.move": "Moved deliveries",
  "deliveries.dead_letter": "Dead-lettered deliveries",
  "operations.pause": "Paused an operation",
  "operations.resume": "Resumed an operation",
  "operations.cancel": "Cancelled an operation",
  pause: "Paused",
  resume: "Resumed",
  "session.begin": "Logged in",
  "session.end": "Logged out",
  "audit.list": "Read the audit log",
  "export.audit": "Exported the audit log",
};

/** Formats a count of entries. `count` decides between singular and plural. */
export const entries = (shown: string, count: number) => `${shown} ${count === 1 ? "entry" : "entries"}`;
