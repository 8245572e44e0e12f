// Texts about waiting messages, in the outbox or in a queue, and about changing them.

import { number, plural } from "~/lib/format";

export const sendNow = "Send now";
export const reschedule = "Reschedule …";
export const edit = "Edit …";
export const cancel = "Cancel …";
export const retry = "Retry now";
export const toFront = "Move to front …";
export const toBack = "Move to back …";
export const deadLetter = "Dead-letter …";
export const sendAllNow = "Send all now …";
export const cancelAll = "Cancel all …";
export const retryAll = "Retry all now …";
export const deadLetterAll = "Dead-letter all …";
export const actions = "Actions";
export const sentAlready = "Already sent.";
export const isParked = "Parked. Requeue or discard its dead letter.";
export const isInFlight = "A worker is handling it.";
export const isDue = "Already due.";
export const isNotDue = "Not due yet.";
export const isOrdered = "It has an ordering key, so it is handled in order.";

// The dialogs
export const titles = {
  cancel: "Cancel messages",
  send_now: "Send messages now",
  reschedule: "Reschedule messages",
  retry: "Retry messages now",
  front: "Move messages to the front",
  back: "Move messages to the back",
  dead_letter: "Dead-letter messages",
};
export const meanings = {
  cancel:
    "Removes the messages from the outbox before they are sent. They become discarded dead letters, which can be restored and requeued.",
  send_now:
    "Makes the messages due now, whatever they are waiting for. Messages that still have no queue are held again.",
  reschedule: "Changes when the messages are due, or their priority.",
  retry: "Makes the next attempt due now.",
  front: "Makes the messages due now, before all others in the queue.",
  back: "Moves the messages after all others that are due now.",
  dead_letter:
    "Ends the messages without another attempt. The dead letters keep the failures so far, and can be requeued.",
};
const verbs = {
  cancel: "Cancel",
  send_now: "Send",
  reschedule: "Reschedule",
  retry: "Retry",
  front: "Move",
  back: "Move",
  dead_letter: "Dead-letter",
};
export type Action = keyof typeof verbs;
export const submit = (action: Action, count: number) => `${verbs[action]} ${plural(count, "message")}`;
/** The service changes at most 10,000 at once, and counts no further. */
const MOST = 10_000;
export const matching = (count: number) =>
  count < MOST
    ? `${plural(count, "message")} ${count === 1 ? "matches" : "match"} now. No more than these are changed; messages in flight are skipped.`
    : `At least ${number(MOST)} messages match now. The first ${number(MOST)} are changed; messages in flight are skipped.`;
export const nothingMatches = "No messages match any more.";
export const counting = "Counting …";
export const keep = "Keep";
export const reason = "Reason";
export const reasonHint = "Recorded in the audit log.";
export const due = (zone: string) => `Due, ${zone}`;
export const dueHint = "Leave empty to keep the time.";
export const priority = "Priority";
export const priorityHint = "0 to 9; higher priorities are sent first. Leave empty to keep it.";
export const nothingChosen = "Enter a time or a priority.";
export const wrongPriority = "Enter a number from 0 to 9.";
const participles = {
  cancel: "cancelled",
  send_now: "due now",
  reschedule: "rescheduled",
  retry: "due now",
  front: "moved to the front",
  back: "moved to the back",
  dead_letter: "dead-lettered",
};
export const done = (action: Action, count: number) => `${plural(count, "message")} ${participles[action]}.`;
export const notDone = (count: number, why: string) => `${plural(count, "message")} unchanged: ${why}.`;

// Editing
export const editTitle = (id: string) => `Edit message ${id}`;
export const editMeaning = "The message is sent with your changes. They are recorded in the audit log.";
export const routingKey = "Routing key";
export const body = "Body";
export const bodyHint = "Checked against the schemas of the consumers.";
export const revealBody = "Reveal the body to edit it (recorded in the audit log)";
export const cannotEditBody = (why: string) => `The body cannot be edited here. ${why}`;
export const noTextBody = "The body is not text; edit it with the command line.";
export const readAgain = "Read it again";
export const currentRoutingKey = (key: string) => `Now “${key}”. Saving replaces it.`;
export const currentBody = "Current body";
export const currentBodyHint = "By another user. Saving replaces it with yours.";
export const save = "Save";
export const force = "Save even if a consumer's schema rejects the body";
export const edited = (id: string) => `Message ${id} was changed.`;
export const nothingEdited = "No changes yet.";

// Publishing
export const publish = "Publish …";
export const publishTitle = "Publish a message";
export const publishMeaning =
  "The message is sent and handled as if an application had published it. This is recorded in the audit log.";
export const publishDestination = "Destination";
export const publishBody = "Body (JSON)";
export const notJson = "Invalid JSON.";
export const enterRoutingKey = "Enter a routing key.";
export const publishButton = "Publish";
export const forcePublish = "Publish even if a consumer's schema rejects the body";
export const sentAs = (id: string) => `Published ${id}.`;

// Deliveries
export const inQueue = "Messages in the queue";
export const table = "Deliveries";
export const status = "Status";
export const all = "All";
export const rabbitmq =
  "RabbitMQ cannot show messages without delivering them, so messages in its queues cannot be listed or changed. Pause the queue, or let them fail and repair the dead letters.";
export const none = "No messages in the queue.";
export const noneWith = (state: string) => `No ${state} messages in the queue.`;
export const delivery = "Delivery";
export const deliveryTitle = (id: string) => `Delivery ${id}`;
export const notThere = (id: string) => `Delivery ${id} is no longer in the queue.`;
export const notThereHint = "It was handled or dead-lettered. Its chain shows the outcome.";
export const head = ["Message", "Status", "Attempt", "Due", "Published", "Last error or body"];
export const worker = "Worker";
export const workerOn = (name: string, host: string, id: number) =>
  `${name} on ${host}, process ${number(id)}`;
export const since = "Since";
export const ahead = "Ahead in the queue";
export const begins = "Starts in about";
export const blockedBy = "Waits for";
export const attempt = "Attempt";
export const crashes = "Worker crashes";
export const dueAt = "Due";
export const leaseEnds = "Lease ends";
export const published = "Published";
export const expires = "Expires";
export const messageId = "Message ID";
export const chain = "Show its chain";
export const orderingKey = "Ordering key";
export const failures = "Failed attempts";
export const failure = (attempt: number) => `Attempt ${number(attempt)}`;
export const bodyOf = (id: string) => `Body of delivery ${id}`;
