// Texts of the dialog that requeues, discards, restores or deletes dead letters.

import { number, plural } from "~/lib/format";

// What the dry run found
export const andMore = (count: number) => `and ${number(count)} more`;
export const dryRun = "Dry run";
export const failedAfter = "Excluding dead letters that failed after";
export const byQueue = "By queue";
export const parkedInOutbox = "parked in the outbox";
export const byException = "By exception";
export const noException = "no exception";
export const nothingToDo = (participle: string) => `No dead letters would be ${participle}.`;
export const noMatch = "No dead letters match.";
export const notEligible = (needed: string) => `The dead letter is not ${needed}, or does not exist.`;
export const noneEligible = (count: number, needed: string) => `None of the ${number(count)} is ${needed}.`;
export const wouldBe = (participle: string) => `would be ${participle}`;
export const checking = "· checking again …";
export const skipped = (count: number, needed: string) =>
  `${number(count)} skipped: not ${needed}, or not found.`;
export const warnings = "Warnings";
export const oldest = "Oldest dead letters";
export const allShown = "All dead letters";

// Options
export const options = "Options";
export const limit = "Limit";
export const limitHint = "Maximum number, oldest first. Leave empty for all.";
export const reason = "Reason";
export const reasonOptional = "Reason (optional)";
export const reasonHint = "Kept in the audit log.";
export const includeOldOne = "Requeue even if it is older than the deduplication window (may run twice)";
export const includeOld = "Include messages older than the deduplication window (may run twice)";
export const purgeOpenOne = "Delete even if it is not discarded";
export const purgeOpen = "Include dead letters that are not discarded";
export const forceEdit =
  "Requeue even if the consumer's schema rejects the edit, or the message is older than the deduplication window";
export const destination = "Destination";
export const destinationHint =
  "Handlers that already processed a message run again, unless they use an inbox.";
export const originalQueue = "Original queue";
export const allBoundQueues = "Republish to all bound queues";
export const anotherQueue = "Another queue";
export const queue = "Queue";
export const safety = "Safety";
export const canary = "Canary: requeue a few first, the rest once those are handled";
export const canarySize = "Canary size";
export const observeFor = "Observe for (s)";
export const maxRate = "Maximum rate (messages/s)";
export const startsAt = (zone: string) => `Start at (${zone})`;
export const localTime = "local time";
export const startPassed = "This time has passed. Leave it empty to start now.";
export const startsAtHint = "Up to 30 days ahead. Leave empty to start now.";
export const maxRateHint = "Leave empty for no limit.";
export const stopAt = "Stop at failure rate (%)";
export const stopAtHintCanary = "Empty: any failure of the canary, then 10 %.";
export const stopAtHint = "Empty: 10 %. 100 never stops.";
export const queueRequired = "Enter a queue.";
export const wholeOrEmpty = "Enter a whole number of 1 or more, or leave empty.";
export const positiveOrEmpty = "Enter a number above 0, or leave empty.";
export const whole = "Enter a whole number of 1 or more.";
export const secondsInDay = "Enter more than 0 and at most 86,400 seconds.";
export const percentOrEmpty = "Enter 0 to 100, or leave empty.";
export const reasonRequired = "A reason is required to delete permanently.";
export const reasonTooLong = "Maximum 2,000 characters.";

// The dialog
export const typeToConfirm = (count: number) => `Type ${number(count)} to confirm`;
export const askAgain = "Try again";

// Outcomes
export const outcomesOf = (verb: string, count: number) =>
  `${verb}: outcome for ${plural(count, "dead letter")}`;
export const outcomes = "Outcomes";
export const deadLetter = "Dead letter";
export const outcome = "Outcome";

// Failures
export const newDryRun = "New dry run";
export const countChanged = "The number of dead letters changed";
export const stillRunning = "Still running";
export const responseLost = "No response received";
export const tryAgainHint = (running: boolean) =>
  `${running ? "The service is still processing the request." : "The request may or may not have been processed."} Try again: the service recognizes the request and processes it only once.`;
export const dryRunAgain = "Repeat dry run";
export const excludeNew = "Exclude new dead letters";
export const operationStarted = (id: string, total: number) =>
  `Operation ${id} started with ${plural(total, "dead letter")}.`;
export const summary = (done: number, total: number, participle: string) =>
  `${number(done)} of ${plural(total, "dead letter")} ${done === 1 ? "was" : "were"} ${participle}.`;
export const newDryRunBecause = (why: string) => `${why} Nothing was changed. Here is a new dry run.`;
export const dryRunTooOld = "The dry run expired. Here is a new one.";
export const drift = (expected: number, found: number) =>
  `The dry run found ${number(expected)} dead letters, now there are ${number(found)}. Nothing was changed.`;
export const expired = "The dry run expired.";
export const used = "The dry run was already used.";
export const otherRequest = "The dry run was for another request.";
export const otherActor = "The dry run was made by another user.";

// Why the button is disabled
export const dryRunRejected = "The dry run was rejected.";
export const dryRunRunning = "The dry run is running.";
export const repeatDryRun = "The number changed. Repeat the dry run.";
export const nothingTo = (verb: string) => `No dead letters to ${verb}.`;
export const typeFirst = (count: number) => `Type ${number(count)} to confirm.`;

// Actions
export const requeue = "Requeue";
export const requeueOne = "Sends the message again, with its ID, to its original queue.";
export const requeueMany = "Sends the messages again, with their IDs, to their original queues.";
export const open = "open";
export const discard = "Discard";
export const discardOne = "The dead letter is kept, no longer counts as open, and can be restored.";
export const discardMany = "The dead letters are kept, no longer count as open, and can be restored.";
export const restore = "Restore";
export const restoreOne = "Reopens the dead letter as it was before it was discarded.";
export const restoreMany = "Reopens the dead letters as they were before they were discarded.";
export const purge = "Delete permanently";
export const purged = "deleted permanently";
export const purgeOne = "Deletes the dead letter and its data. This cannot be undone.";
export const purgeMany = "Deletes the discarded dead letters and their data. This cannot be undone.";
export const dryRunInvalid = "The dry run was not accepted.";
export const requeued = "requeued";
export const discarded = "discarded";
export const restored = "restored";
export const parked = "parked";
