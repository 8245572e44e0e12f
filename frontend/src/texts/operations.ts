// Texts of the pages about operations.

import { moment, number, plural, span, type Zone } from "~/lib/format";

// Actions
export const done = (id: string, state: string) => `Operation ${id} ${state}.`;
export const failed = (id: string, why: string) => `Operation ${id}: ${why}`;
export const resume = "Resume";
export const pause = "Pause";
export const cancel = "Cancel";
export const isPaused = "is paused";
export const isResumed = "is resumed";
export const isCancelled = "is cancelled";
export const cancelTitle = (id: string) => `Cancel operation ${id}?`;
export const keepRunning = "Keep running";
export const cancelOperation = "Cancel the operation";
export const cancelHint = (settled: number, left: number) =>
  `${plural(settled, "dead letter")} ${settled === 1 ? "was" : "were"} processed and stay changed. The other ${plural(left, "dead letter")} ${left === 1 ? "stays" : "stay"} as before. A cancelled operation cannot be resumed.`;

// Progress
export const failedAgain = "failed again";
export const progress = "Progress";
export const sent = "Sent";
export const doneFigure = "Done";
export const ofTotal = (done: number, total: number) => `${number(done)} of ${number(total)}`;
export const rateSoFar = "Rate so far";
export const rate = "Rate";
export const timeLeft = "Time left";
export const duration = "Duration";
export const outcomes = "Outcomes of sent messages";
export const waiting = "Waiting";
export const retrying = "Retrying";
export const handled = "Handled";
export const failedAgainFigure = "Failed again";
export const unknown = "Unknown";
export const noEstimate = "no estimate yet";
export const about = (duration: string) => `about ${duration}`;
const leftOver = (left: number) =>
  left === 0 ? "" : ` ${plural(left, "dead letter")} ${left === 1 ? "was" : "were"} not changed.`;
const participles = {
  requeue: "requeued",
  discard: "discarded",
  restore: "restored",
  purge: "deleted permanently",
};
export const stopped = (why: string | null, left: number) =>
  `Stopped automatically${why ? `: ${why}` : ""}.${leftOver(left)}`;
export const cancelled = (settled: number, total: number, action: keyof typeof participles) =>
  `Cancelled. ${number(settled)} of ${number(total)} were ${participles[action]}.`;
export const paused = (left: number) =>
  `Paused. ${plural(left, "dead letter waits", "dead letters wait")} until the operation is resumed.`;
export const canarySent = (count: number, left: number, wait: string) =>
  `The first ${number(count)} are sent. The other ${number(left)} follow once those are handled. The operation observes them for another ${wait}, and stops if too many fail.`;
export const allSent = (open: number) =>
  `All messages are sent. ${plural(open, "message has", "messages have")} no final outcome yet.`;

// Items
export const all = "All";
export const items = "Items";
export const outcomesFilter = "Outcomes";
export const noneWithOutcome = (outcome: string) => `No ${outcome} items.`;
export const noItems = "No items.";
export const otherOutcomes = "Choose another outcome above.";
export const noItemsHint = "No dead letters matched when the operation started.";
export const changedRows = (count: number) => `${plural(count, "row")} changed · Show`;
export const deadLetter = "Dead letter";
export const outcome = "Outcome";
export const result = "Result";
export const reason = "Reason";
export const afterFailures = (count: number) => ` after ${plural(count, "failed attempt")}`;
export const waitingResult = "waiting";
export const retryingResult = "retrying";
export const handledResult = "handled";
export const failedAgainResult = "failed again";
export const unknownResult = "unknown";

// One operation
export const titleOf = (id: string) => `Operation ${id}`;
export const titleWithState = (id: string, state: string) => `Operation ${id}: ${state}`;
export const allOperations = "All operations";
export const request = "Request";
export const operation = "Operation";
export const selection = "Selection";
export const options = "Options";
export const startedBy = "Started by";
export const started = "Started";
export const ended = "Ended";
export const anyDeadLetter = "of any kind";
export const selectionHint = (phrases: string) =>
  `Dead letters ${phrases}, as of the start of the operation.`;
export const showSelection = "Show";
export const andMore = (count: number) => ` and ${number(count)} more`;

// The list
export const title = "Operations";
export const subtitle = "Bulk operations on dead letters";
export const empty = "No operations.";
export const emptyHint =
  "Requeueing more than 100 dead letters, all dead letters that match the filters, or at a limited rate starts an operation. Its progress and outcome stay listed here.";
export const fresh = (count: number) => `${plural(count, "new operation")} · Show`;
export const action = "Action";
export const status = "Status";
export const progressOf = (id: string) => `Progress of operation ${id}`;
export const nextRow = "Next row";
export const previousRow = "Previous row";
export const open = "Open";

// What was requested
const verbs = {
  requeue: "Requeue",
  discard: "Discard",
  restore: "Restore",
  purge: "Delete permanently",
};
export const actionOn = (action: keyof typeof verbs, total: number) =>
  `${verbs[action]} ${plural(total, "dead letter")}`;
export const stoppedState = "stopped automatically";
export const limited = (most: number) => `Maximum ${number(most)}, oldest first.`;
export const forcedPurge = "Include dead letters that are not discarded.";
export const forcedRequeue = "Include messages older than the deduplication window.";
export const startsIn = "Scheduled. It starts";
export const unlimitedRate = "No rate limit.";
export const limitedRate = (rate: number) => `Maximum ${number(rate)} messages/s.`;
export const canary = (count: number, wait: number, share: string | undefined) =>
  `Canary: ${number(count)} messages, observed for up to ${span(wait)}; the rest follow unless ${share === undefined ? "one of them fails" : `more than ${share} of them fail`}.`;
export const neverStops = "Does not stop at failures.";
export const stopsAt = (share: string) => `Stops at a failure rate above ${share}.`;
export const toQueue = (queue: string) => `Destination: queue ${queue}.`;
export const toBoundQueues = "Destination: all bound queues.";
export const toOriginalQueue = "Destination: original queue.";

/** A filter of an operation, as part of "Dead letters …". */
export const filterPhrases: Record<string, (value: string, zone: Zone) => string> = {
  status: (value) => `with status ${value}`,
  source: (value) => `dead-lettered by the ${value}`,
  queue: (value) => `of queue ${value}`,
  routing_key: (value) => `with routing key ${value}`,
  exception_type: (value) => `with exception ${value}`,
  group_id: (value) => `of group “${value}”`,
  tracking_id: (value) => `of the chain of ${value}`,
  message_id: (value) => `of message ${value}`,
  failed_after: (value, zone) => `failed at or after ${moment(value, zone)}`,
  failed_before: (value, zone) => `failed before ${moment(value, zone)}`,
  min_failures: (value) => `with at least ${value} failures`,
  destination: (value) => `for destination ${value}`,
  q: (value) => `matching “${value}”`,
};
