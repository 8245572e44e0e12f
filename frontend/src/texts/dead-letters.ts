// Texts of the list of dead letters, and of one dead letter.

import { number, plural } from "~/lib/format";

// The list
export const title = "Dead letters";
export const titleOf = (id: string) => `Dead letter ${id}`;
export const status = "Status";

// Filters
export const filter = "Filter dead letters";
export const search = "Search";
export const searchHint = 'Words of the error or of the masked body; also "phrases", or, and -not.';
export const error = "Error";
export const queue = "Queue";
export const routingKey = "Routing key";
export const destination = "Destination";
export const forDestination = (name: string) => `for ${name}`;
export const source = "Dead-lettered by";
export const failedAfter = "Failed after";
export const failedBefore = "Failed before";
export const minFailures = "Minimum failures";
export const group = "Group";
export const groupHint = "ID of a failure group.";
export const chain = "Chain";
export const chainHint = "ID of any message in the chain.";
export const messageId = "Message ID";
export const messageIdHint = "The full message ID.";
export const aWorker = "worker";
export const theRelay = "relay";
export const theBroker = "broker";
export const messages = "Messages";
export const groups = "Groups";
export const sameError = "Error";
export const view = "View";
export const groupedBy = "Group by";
export const order = "Sort";
export const newestFirst = "Newest first";
export const oldestFirst = "Oldest first";
export const selectPage = "Select all on this page";
export const deadLetter = "dead letter";
export const deadLetters = "dead letters";
export const newCount = (count: number) => `${number(count)} new`;
export const resolvedCount = (count: number) => `${number(count)} resolved`;
export const refresh = (changes: string) => `${changes} · Refresh`;
export const nextRow = "Next row";
export const previousRow = "Previous row";
export const selectRow = "Select row";
export const selectRange = "Select rows up to this one";
export const noMatch = "No dead letters match the filters.";
export const noMatchHint = "Remove a filter or choose another status.";
export const noneOpen = "No open dead letters.";
export const noneOpenHint = "A message that fails for good appears here.";
export const noneDiscarded = "No discarded dead letters.";
export const noneDiscardedHint =
  "Discarded dead letters stay here until they are restored or deleted permanently.";
export const noneRequeued = "No requeued dead letters.";
export const noneRequeuedHint = "Requeued dead letters stay here with their outcome.";
export const none = "No dead letters.";
export const select = (id: string) => `Select dead letter ${id}`;
export const anyQueue = "before any queue";
export const resolved = "resolved";
export const failedAgain = (times: number) =>
  times > 1 ? `failed again ${number(times)} times` : "failed again";
export const unknownError = "Unknown error";

// Selection
export const selection = "Selection";
export const requeueSelected = "Requeue selection";
export const clearSelection = "Clear selection";
export const selected = "Selection";
export const selectedCount = (count: number) => `${number(count)} selected`;
export const oneDeadLetter = (id: string) => `dead letter ${id}`;
export const selectedDeadLetters = (count: number) => `${number(count)} selected dead letters`;
export const all = (count: string) => `All ${count}`;
export const allMatching = "All";
export const matchingSelected = (all: string) => `${all} matching selected`;
export const matchingDeadLetters = (all: string) =>
  `${all.toLowerCase()} dead letters that match the filters`;
export const selectAllMatching = (count: string) => `Select all ${count} matching`;

// What is missing from the list
export const unavailable = (names: string, broker: boolean) =>
  `${names} did not respond. The dead letters shown are correct. ${broker ? "The number of dead letters still at the broker is unknown." : "Further dead letters may exist."}`;
export const notArchived = (count: number, queues: string) =>
  `${plural(count, "dead letter")} at the broker ${count === 1 ? "is" : "are"} not archived yet: ${queues}. An archiver copies them into this list. If the number stays, check that an archiver is running.`;
export const theBrokerName = "The broker";
export const theDatabaseName = "The database";

// Actions
export const requeue = "Requeue";
export const discard = "Discard";
export const restore = "Restore";
export const purge = "Delete permanently";
export const onlyDiscardedPurged = "Only discarded dead letters can be deleted permanently.";
export const onlyDiscardedRestored = "Only discarded dead letters can be restored.";
export const restoreFirst = "Discarded. Restore first.";
export const alreadyRequeued = "Already requeued. It opens again if it fails again.";
export const open = "Open";
export const requeued = "Requeued";
export const discarded = "Discarded";
export const anyStatus = "All";

// Groups
export const counted = "counted";
export const largestOnly = "Only the largest groups are shown. Add filters to see others.";
export const freshGroups = (count: number) => `${number(count)} new · Refresh`;
export const openOfGroup = (title: string) => `the open dead letters of the group “${title}”`;
export const last24Hours = "last 24 hours";
export const openCount = (count: number) => `${number(count)} open`;
export const theGroup = (title: string) => `the group ${title}`;
export const first = "first";
export const last = "· last";
export const neverRequeued = "never requeued";
export const requeuedAt = "requeued";
export const noneSince = "no failures since";
export const failedSince = (count: number) => `${number(count)} failed since`;
export const noneInDay = "No failures in the last 24 hours";
export const failuresInDay = (all: number, latest: number) =>
  `${number(all)} failed in the last 24 hours, ${number(latest)} in the last hour`;
export const groupStatus = "Group status";
export const activeGroups = "Open and reopened";
export const fixedGroups = "Fixed";
export const mutedGroups = "Muted";
export const anyGroups = "All groups";
export const versions = (names: readonly string[]) =>
  `version ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
export const markedFixed = (version: string | null) => (version ? `fixed in ${version}` : "fixed");
export const markedMuted = (above: number) => `muted up to ${number(above)} open`;
export const by = (actor: string) => `by ${actor}`;

// One group
export const groupTitle = "Failure group";
export const allGroups = "All groups";
export const noSuchGroup = "Group not found.";
export const noSuchGroupHint = "Its dead letters may have been deleted permanently.";
export const policy = "Requeue policy";
export const policyTitle = "Requeue this group automatically";
export const policyMeaning =
  "Once an hour, maintenance requeues the oldest open dead letters of this group. One is sent first; the others follow once it has been handled. The policy stops when a message fails again.";
export const policyPerHour = "At most per hour";
export const policyOn = "On";
export const policyOff = "Off (remove the policy)";
export const policySet = (perHour: number) => `Up to ${number(perHour)} per hour will be requeued.`;
export const policyGone = "The requeue policy was removed.";
export const policyLine = (perHour: number, by: string) => `Up to ${number(perHour)} per hour, set by ${by}`;
export const policyOperation = (id: number) => `operation ${id}`;
export const policyStopped = "stopped";
export const mark = "Mark";
export const markTitle = "Mark this group";
export const markAs = "Mark as";
export const markSave = "Save";
export const asFixed = "Fixed";
export const asMuted = "Muted";
export const asOpen = "Open (remove the mark)";
export const fixedMeaning =
  "Hides the group from the list until it fails again. Then it is listed as reopened.";
export const mutedMeaning =
  "Hides the group from the list and from the status until more than this number are open.";
export const openMeaning = "Removes the mark. The group is listed again.";
export const fixedIn = "In version (optional)";
export const fixedInHint =
  "The release with the fix, as set in OUTBOX_SERVICE_VERSION. Failures in releases that already failed do not reopen the group.";
export const mutedAbove = "Reopen when more than this number are open";
export const mutedWrong = "Enter a whole number from 1 to 100,000.";
export const marked = {
  fixed: "Group marked as fixed.",
  muted: "Group muted.",
  open: "Mark removed.",
} as const;
export const requeueAll = "Requeue open";
export const discardAll = "Discard open";
export const handler = "Handler";
export const deadLettersHeading = "Dead letters";
export const ofWhichOpen = (count: number, open: number) => `${number(count)}, ${number(open)} open`;
export const versionsHeading = "Versions";
export const count = "Count";
export const firstSeen = "First failed";
export const lastSeen = "Last failed";
export const noVersions = "Set OUTBOX_SERVICE_VERSION to see which releases of your service are affected.";
export const sample = "Latest sample";
export const latestMessages = "Latest messages";
export const latestTable = "Dead letters of this group";
export const versionsTable = "Versions in which it failed";
export const allMessages = "All messages";
export const failedAtHeading = "Failed";

export const changeNote = "Edit note";
export const addNote = "Add note";
export const ofGroup = (title: string) => `of the group ${title}`;
export const noteSaved = "Note saved.";
export const noteRemoved = "Note removed.";
export const noteTitle = "Note on the group";
export const noteHint = (title: string) =>
  `${title}. Visible to all users. Changes are written to the audit log.`;
export const noChanges = "No changes yet.";
export const currentNote = "Current note";
export const currentNoteHint = "By another user. Saving replaces it with yours.";
export const saveNote = "Save";
export const removeNote = "Remove note";
export const note = "Note";
export const noteFieldHint =
  "For example who to ask, the cause, or a ticket. Leave empty to remove the note.";

// One dead letter
export const inOperation = (id: string) => `It is part of operation ${id}.`;
export const deadLetterHeading = "Dead letter";
export const requeueThis = "Requeue";
export const editAndRequeueThis = "Edit and requeue";
export const close = "Close the dead letter";
export const previous = "Previous dead letter";
export const firstOfPage = "This is the first one on the page.";
export const next = "Next dead letter";
export const lastOfPage = "This is the last one on the page.";
export const notFound = (id: string) => `Dead letter ${id} not found.`;
export const notFoundHint = "It may have been deleted permanently. Look for the message in its chain.";
export const bodySaved = "Body downloaded.";
export const downloadTitle = "Download the body?";
export const downloadHint = (size: string) =>
  `The full body (${size}), unmasked. The download is written to the audit log under your name.`;
export const download = "Download";
export const editionUntil = (version: number, actor: string) => `Version ${version}, replaced by ${actor}`;
export const bodyOfVersion = (version: number) => `Body of version ${version}`;
export const headersOfVersion = (version: number) => `Headers of version ${version}`;
export const noHeaders = "None.";
export const name = "Name";
export const type = "Type";
export const value = "Value";
export const more = "More";
export const copyCurl = (action: string) => `Copy as curl: ${action}`;
export const copyCommand = (action: string) => `Copy as command: ${action}`;
export const downloadBody = "Download the body";
export const showThis = "show";
export const requeueVerb = "requeue";
export const discardVerb = "discard";
export const restoreVerb = "restore";
export const copiedCommand = "Copied. The command reads the token from $OUTBOX_TOKEN.";
export const unmasked = "unmasked";
export const maskAgain = "Mask again";
export const reveal = "Reveal";
export const revealTitle = "Reveal masked values?";
export const stackTrace = "Stack trace";
export const payload = "Payload";
export const bodyOf = (id: string) => `Body of dead letter ${id}`;
export const timeline = "Timeline";
export const details = "Details";
export const headers = "Headers";
export const properties = "Properties";
export const earlierVersions = "Earlier versions";
export const operations = "Operations";
export const exchange = "Exchange";
export const message = "Message";
export const followChain = "Show chain";
export const similar = "Similar failures";
export const showSimilar = "Show group";
export const orderingKey = "Ordering key";
export const worker = "Worker";
export const failures = "Failures";
export const published = "Published";
export const firstFailed = "First failed";
export const lastFailed = "Last failed";
export const contentType = "Content type";
export const sequence = "Sequence number";
export const serviceVersion = "Service version";
export const version = "Version";
export const copyMessageId = "Copy message ID";
export const operation = (id: string) => `Operation ${id}`;
export const unknownTime = "time unknown";
export const later = (duration: string) => `, ${duration} later`;
export const traceback = "Traceback";
export const noErrorMessage = "The error has no message.";
export const operationClaims =
  "will change this dead letter. Other changes are not possible until the operation ends.";
export const retriesExhausted = "Retries exhausted";
export const rejectedByWorker = "Dead-lettered by a worker";
export const parkedByRelay = "Parked by the relay";
export const removedByBroker = "Removed by the broker";
export const decidedBy = (discarded: boolean, actor: string) =>
  `${discarded ? "Discarded" : "Requeued"} by ${actor}`;
export const outcomeUnderWay = "In progress.";
export const outcomeProcessed = "It has been processed.";
export const outcomeFailedAgain = "Failed again.";
export const outcomeDuplicate = "Skipped as a duplicate.";
export const foldFrames = "Collapse frames";
export const unfoldFrames = "Expand all frames";
export const copyTraceback = "Copy traceback";
export const moreFrames = (count: number) => plural(count, "more frame");
export const framesTo = (path: string) => `, to ${path}`;
export const inFunction = (name: string) => `in ${name}`;

// The timeline of a dead letter
export const editedBy = (actor: string) => `Edited by ${actor}`;
export const versionReplaced = (version: number) => `Version ${version} was replaced.`;
export const publishedWith = (key: string) => `Published with routing key ${key}`;
export const attemptFailed = (attempt: number, worker: string | null) =>
  `Attempt ${attempt} failed${worker ? ` on ${worker}` : ""}`;
export const requeuedBy = (actor: string, queue: string | null) =>
  `Requeued by ${actor}${queue === null ? "" : ` to ${queue}`}`;
export const noOutcomeYet = "In progress, no outcome yet.";
export const failedAgainEvent = "Failed again";
export const processed = "Processed";
export const duplicate = "Duplicate";
export const duplicateHint = "The inbox of the queue had already recorded this message.";
export const deadLettered = (cause: string) => `Dead-lettered: ${cause}`;
export const afterFailures = (count: number) => `After ${plural(count, "failure")} in total.`;

// Counts
export const failuresOf = (count: number) => plural(count, "failure");
export const failuresCount = (failures: number, times: number) =>
  `${plural(failures, "failure")}, dead-lettered ${plural(times, "time")}`;
export const requeuedTimes = (count: number) => (count === 0 ? "never" : plural(count, "time"));
export const groupsCount = (count: number) => plural(count, "group");
export const revealHint =
  "Shows the body, headers and errors of this dead letter unmasked. This is written to the audit log under your name.";
