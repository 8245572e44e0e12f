// Texts about messages that wait, in the outbox or in a queue, and about changing them.

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
export const sentAlready = "It was sent already.";
export const isParked = "It is parked: requeue or discard its dead letter.";
export const isInFlight = "A worker has it: its outcome counts.";
export const isDue = "It is due already.";
export const isNotDue = "It is not due yet.";
export const isOrdered = "It has an ordering key: it is handled after those before it.";

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
    "They leave the outbox before they are sent, and become discarded dead letters, which can be restored and requeued.",
  send_now: "They are due now, whatever they wait for. What still has no queue is held again.",
  reschedule: "They are due at another time, or sent ahead of messages with a lower priority.",
  retry: "Their next attempt is due now.",
  front: "They are due now, before all others in the queue.",
  back: "They are handled after all others that are due now.",
  dead_letter: "They end without another attempt, with their failures so far. A dead letter can be requeued.",
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
export const matching = (count: number) =>
  `${plural(count, "message")} ${count === 1 ? "matches" : "match"} now. No more than that are changed; what is in flight is skipped.`;
export const nothingMatches = "Nothing matches any more.";
export const counting = "Counting …";
export const keep = "Keep";
export const reason = "Reason";
export const reasonHint = "Recorded in the audit log.";
export const due = (zone: string) => `Due, ${zone}`;
export const dueHint = "Leave empty to keep the time.";
export const priority = "Priority";
export const priorityHint = "0 to 9; higher ones are sent first. Leave empty to keep it.";
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
export const editMeaning = "It is sent as it is afterwards. The change is recorded in the audit log.";
export const routingKey = "Routing key";
export const body = "Body";
export const bodyHint = "It is checked against the schema of the consumers that it is for.";
export const revealBody = "Reveal the body to edit it (recorded in the audit log)";
export const noTextBody = "The body is not text; edit it with the command line.";
export const save = "Save";
export const force = "Save even if a consumer's schema refuses the body";
export const edited = (id: string) => `Message ${id} was changed.`;
export const nothingEdited = "Nothing was changed yet.";

// Publishing
export const publish = "Publish …";
export const publishTitle = "Publish a message";
export const publishMeaning =
  "It is sent and handled as if an application had published it, and recorded in the audit log.";
export const publishBody = "Body (JSON)";
export const notJson = "This is not JSON.";
export const enterRoutingKey = "Enter a routing key.";
export const publishButton = "Publish";
export const forcePublish = "Publish even if a consumer's schema refuses the body";
export const sentAs = (id: string) => `Published ${id}.`;

// Deliveries
export const inQueue = "Messages in the queue";
export const table = "Deliveries";
export const status = "Status";
export const all = "All";
export const rabbitmq =
  "RabbitMQ shows no message without delivering it, so that messages in its queues can be neither listed nor changed. Pause the queue, or let them fail and repair the dead letters.";
export const none = "No messages in the queue.";
export const noneWith = (state: string) => `No ${state} messages in the queue.`;
export const delivery = "Delivery";
export const deliveryTitle = (id: string) => `Delivery ${id}`;
export const notThere = (id: string) => `Delivery ${id} is no longer in the queue.`;
export const notThereHint = "It was handled, or it is a dead letter. Its chain shows the outcome.";
export const head = ["Message", "Status", "Attempt", "Due", "Published", "Last error or body"];
export const worker = "Worker";
export const workerOn = (name: string, host: string, id: number) =>
  `${name} on ${host}, process ${number(id)}`;
export const since = "Since";
export const ahead = "Due before it";
export const begins = "Begins in about";
export const blockedBy = "Waits for";
export const attempt = "Attempt";
export const crashes = "Workers lost with it";
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
