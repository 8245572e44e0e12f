// Texts of the topology page.

import { number, plural } from "~/lib/format";

export const drawing = "Diagram";
export const list = "List";
export const title = "Topology";
export const empty = "No data.";
export const emptyHint = "Exchanges and queues appear once a relay or a worker has reported them.";
export const queues = "Queues";
export const views = "Views";
export const showAll = "Show every queue and worker separately";
export const brokerDown = "The broker does not respond";
export const brokerDownHint =
  "Based on the reports of workers. Queue depths, and whether queues exist, are unknown.";
export const databaseDown = "The database does not respond";
export const databaseDownHint = "The page shows the last known state.";
export const bindingsHint =
  "Only bindings that workers reported are shown. To show all bindings, set OUTBOX_MANAGEMENT_URL to the address of RabbitMQ's management API.";
export const allFine = "All routing keys are bound and all queues have consumers.";
export const ok = "No problems";
export const show = "Show";
export const copyCommand = (command: string) => `Copy ${command}`;

// The selected node
export const exchange = "Exchange";
export const queue = "Queue";
export const retryQueue = "Retry queue";
export const deadLetterQueue = "Dead letter queue";
export const worker = "Worker";
export const close = "Close the details";
export const copyName = "Copy name";
export const missing = "missing";
export const messages = "Messages";
export const showWorkers = "Show workers";
export const archivedDeadLetters = "Archived dead letters";
export const depth = "Depth";
export const noData = "no data";
export const retriedLater = "Retrying";
export const bindingKeys = "Binding keys";
export const consumers = "Consumers";
export const retryQueues = "Retry queues";
export const deadLettersTo = "Dead letters to";
export const queuePage = "Workers, rates and handling times";
export const messagesInOutbox = "Messages in the outbox";
export const deadLetters = "Dead letters";

// The diagram
export const drawingLabel = "Diagram of exchanges, queues and workers. The view List shows the same as text.";
export const depthAndRetries = (queued: string, retrying: number) =>
  `${queued} + ${number(retrying)} retrying`;
export const noBindings = "no bindings";
export const noConsumer = (keys: string) => `! no consumer; ${keys}`;

// The list
export const bindings = "Bindings";
export const retries = "Retries";
export const workers = "Workers";
export const noQueuesHint = "A worker declares its queues at start.";
export const noQueues = "No queues.";
export const from = (exchange: string) => `from ${exchange}`;
export const retryingCount = (count: number) => `${number(count)} retrying`;
export const none = "none";
export const foldedRetries = (count: number) => `${count} retry queues`;
export const foldedWorkers = (count: number) => `${count} similar workers`;

// Commands
export const subscriptionLoss =
  "Run the second command in psql, in the schema of the outbox table. It ends the subscription: messages published afterwards do not reach this queue. Messages already in the queue stay, unhandled.";
export const queueLoss =
  "The second command permanently deletes the queue and its bindings. It fails while the queue contains messages. Messages published afterwards do not reach this queue. Add -p for a virtual host other than /.";

// Counts and depths
export const exchangesCount = (count: number) => plural(count, "exchange");
export const queuesCount = (count: number) => plural(count, "queue");
export const workersCount = (count: number) => plural(count, "worker");
export const problemsCount = (errors: number, warnings: number) =>
  [errors && plural(errors, "error"), warnings && plural(warnings, "warning")].filter(Boolean).join(", ");
export const emptyQueue = "empty";
export const exchangeBox = "exchange";
export const workerBox = "worker";
