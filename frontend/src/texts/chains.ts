// Texts of the pages about chains.

import { number, plural } from "~/lib/format";

export const chain = "Chain";

// The list
export const title = "Chains";
export const introduction =
  "A chain is a message and all messages that its handlers published, directly or indirectly.";
export const filter = "Filter chains";
export const recent = "Recent chains";
export const fresh = (count: number) => `${number(count)} new · Show`;
export const status = "Status";
export const firstRoutingKey = "First routing key";
export const firstRoutingKeyHint = "The exact routing key of the first message.";
export const startedAfter = "Started after";
export const startedBefore = "Started before";
export const nextChain = "Next chain";
export const previousChain = "Previous chain";
export const noMatchHere = "No chains on this page match the filters.";
export const noMatchHereHint = "Each page searches up to 1,000 chains. Select “Older” to continue.";
export const noMatchHint = "Remove a filter to see more.";
export const noMatch = "No chains match the filters.";
export const empty = "No chains in the history.";
export const emptyHint =
  "A chain appears here once its first message has been sent, if relays and workers write the history. Look up messages that are still in the outbox by ID.";
export const firstMessage = "First message";
export const started = "Started";
export const duration = "Duration";
export const messages = "Messages";
export const deadLetters = "Dead letters";
export const moreThanCounted = "The chain has more messages than were counted.";
export const lookUp = "Look up an ID";
export const anyId = "ID of any message in a chain";
export const anyIdShort = "Message ID";
export const enterId = "Enter an ID.";
export const find = "Find";

// One chain
export const attemptsIn = (queue: string) => `Attempts in ${queue}`;
export const ran = (duration: string) => `ran ${duration}`;
export const atComponent = (component: string) => `on ${component}`;
export const attempt = (number: number) => `Attempt ${number}`;
export const soFar = " so far";
export const attemptOutcome = (attempt: number, outcome: string) => `Attempt ${attempt}: ${outcome}`;
export const earlierTime = "Earlier than the visible range";
export const laterTime = "Later than the visible range";
export const message = "Message";
export const cause = "Cause";
export const queue = "Queue";
export const publishedAfter = "Published after";
export const inOutbox = "In the outbox";
export const inBroker = "In the broker";
export const handling = "Handling";
export const attempts = "Attempts";
export const lastError = "Last error";
export const messagesOfChain = "Messages of the chain";
export const tablePages = "Pages of the table";
export const firstPage = "This is the first page.";
export const previousPage = "Previous";
export const lines = (first: number, last: number, total: number) =>
  `${number(first)} to ${number(last)} of ${number(total)} rows`;
export const lastPage = "This is the last page.";
export const nextPage = "Next";
export const onCriticalPath = "on the critical path";
export const unknownCause = "unknown";
export const startOfChain = "start of the chain";
export const selectedMessage = "Selected message";
export const id = "ID";
export const lookedUp = "Looked up";
export const byThisId = "by this message's ID";
export const criticalPath = "Critical path";
export const yes = "yes";
export const effects = "Effects";
export const published = "Published";
export const sent = "Sent";
export const sentBy = "Sent by";
export const stalledSince = "Stalled since";
export const unroutableSince = "Unroutable since";
export const due = "Due";
export const requeued = "Requeued";
export const copyId = "Copy ID";
export const causeUnknown = "Unknown: no record of the cause";
export const causeNotFound = (id: string) => `${id} (not found)`;
export const effectsCount = (direct: string, more: number) =>
  `${direct}, and ${number(more)} more after them`;
export const deadLetter = "Dead letter";
export const messageInOutbox = "Message in the outbox";
export const ahead = (count: number) => `; ${plural(count, "delivery", "deliveries")} ahead of it`;
export const firstTaken = "First delivered";
export const waitBeforeFirst = (duration: string) => `${duration} before the first attempt`;
export const waitingFor = "Waiting for";
export const nextAttempt = "Next attempt";
export const legendOutbox = "in the outbox";
export const legendBroker = "in the broker";
export const legendRetry = "waiting for the next attempt";
export const legendDead = "dead letter until requeued";
export const legend = "Legend";
export const retryMark = "retry";
export const deadMark = "dead letter";
export const criticalPathHint =
  "The path to the event that happened last. It determines the duration of the chain.";
export const criticalPathMark = "critical path";
export const lookedFor = "You looked up";
export const lookedForIn = ", which is part of this chain.";
export const showIt = "Show it";
export const notShownMessage = "The message";
export const notShownIn = "is part of this chain, but not among those shown.";
export const more = (shown: number) => `The chain has more than the ${number(shown)} messages shown.`;
export const showUpTo = (most: number) => `Show up to ${number(most)}`;
export const tooMany = (shown: number) =>
  `The chain has more than the ${number(shown)} messages shown, which is the maximum per response. To see another message, look it up by its ID.`;
export const orphans = (count: number) =>
  count === 1
    ? "The cause of 1 message is unknown. It is listed at the end as “cause unknown”."
    : `The causes of ${number(count)} messages are unknown. They are listed at the end as “cause unknown”.`;
export const degraded = (reason: string) => `Not available: ${reason}.`;
export const notices = "Notes about this chain";
export const chainOf = (key: string) => `Chain of ${key}`;
export const allChains = "All chains";
export const notFound = "No chain found for this ID.";
export const notFoundHint = "Check the ID:";
export const notFoundHistory =
  ". Sent messages are found only in the history, which is deleted after the retention period.";
export const waterfall = "Waterfall";
export const tree = "Tree";
export const table = "Table";
export const nextView = "Next view";
export const closeMessage = "Close the message";
export const views = "View";
export const since = "since";
export const sorted = (how: string) => `, sorted, ${how}`;
export const sortBy = ", sort by this column";
export const needsAttention = "Needs attention";
export const retried = "Retried";
export const firstId = "ID of the first message";
export const parentUnknown = "cause unknown";
export const treeLabel = "Messages of the chain as a tree";
export const waterfallLabel = "Messages of the chain by time";
export const noTimesHint = "The tree shows which message led to which.";
export const noTimes = "No times are recorded for this chain.";
export const wholeTimeShown = "The full time range is already shown.";
export const timeRange = "Visible time range";
export const zoomOut = "Zoom out";
export const zoomIn = "Zoom in";
export const earlier = "Earlier";
export const later = "Later";
export const selectFirst = "Select a message first.";
export const zoomToSelected = "Zoom to selection";
export const wholeTime = "Full range";
export const nextMessage = "Next message";
export const previousMessage = "Previous message";
export const waitedInOutbox = "In the outbox";
export const waitedInBroker = "In the broker";
export const handled = "Handled";
export const waitedForRetry = "Waiting for the next attempt";
export const wasDeadLetter = "Dead letter";
export const doneOutcome = "done";
export const retriedOutcome = "failed, retried";
export const deadLetteredOutcome = "failed, dead-lettered";
export const duplicateOutcome = "duplicate";
export const noName = "(no name)";
export const inQueue = (queue: string) => `in ${queue}`;
export const took = (duration: string) => `took ${duration}`;
export const attemptsCount = (count: number) => plural(count, "attempt");
export const effectsOfIt = (count: number) => plural(count, "effect");
export const foldAll = (count: number) => `All ${number(count)} are shown. Collapse`;
export const allInState = (state: string) => `all ${state}`;
export const andMore = (hidden: number, states: string) => `and ${number(hidden)} more (${states})`;
export const showWholeTime = "Show the full time range";
export const zoomToMessage = "Zoom to the selected message";
export const times = (count: number) => plural(count, "time");
export const messagesCount = (count: number) => plural(count, "message");
export const ascending = "ascending";
export const descending = "descending";
