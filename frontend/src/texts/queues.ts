// Texts of the pages about queues.

import { number, plural } from "~/lib/format";

export const title = "Queues";
export const tabTitle = (name: string) => `Queue ${name}`;
export const allQueues = "All queues";

// The list
export const kinds = "Queues to show";
export const all = "All";
export const withProblems = "With problems";
export const queue = "Queue";
export const state = "State";
export const waiting = "Queued";
export const failures = "Failed";
export const handling = "Handling, p95";
export const lastHour = "Last hour";
export const consumers = "Consumers";
export const dead = "Dead letters";
export const search = "Search queues and handlers";
export const empty = "No queues.";
export const emptyHint = "A queue is listed as soon as a worker consumes it or it is bound to the exchange.";
export const noneWithProblems = "No queue has a problem.";
export const noneFound = (words: string) => `No queue or handler contains “${words}”.`;
export const depthsUnknown = (why: string) => `Depths are unknown: ${why}`;
export const unknown = "unknown";
export const inFlight = (count: string) => `${count} in flight`;
export const retrying = (count: string) => `${count} retrying`;
export const oldest = (age: string) => `oldest ${age}`;
export const drained = (age: string) => `drained in ${age}`;
export const growing = "growing";
export const dayBefore = (time: string) => `${time} a day earlier`;
export const noAttempts = "no attempts";
export const attempts = (handled: number, failed: number, latest: number) =>
  `${plural(handled, "message")} handled and ${number(failed)} failed in the last hour, ${number(latest)} in the last 5 minutes`;
export const activeCount = (count: number) => number(count);
export const lost = (count: number) => `${number(count)} lost`;

// States
export const states = {
  ok: "OK",
  paused: "paused",
  no_consumer: "no consumer",
  behind: "behind",
  deep: "deep",
  failing: "failing",
  misconfigured: "misconfigured",
  missing: "does not exist",
};

// One queue
export const notThere = "Queue not found.";
export const notThereHint =
  "No worker has consumed a queue of this name in the last day, and none is bound to the exchange.";
export const pause = "Pause";
export const resume = "Resume";
export const now = "Now";
export const handler = "Handler";
export const bindings = "Bound with";
export const depth = "Queued";
export const inFlightLabel = "In flight";
export const retryingLabel = "Retrying";
export const oldestLabel = "Oldest";
export const incoming = "In";
export const outgoing = "Out";
export const drainedLabel = "Drained in";
export const never = "not at these rates";
export const failedShare = "Failed attempts";
export const times = "Handling time";
export const timesBefore = "A day earlier";
export const quantiles = (p50: string, p95: string, p99: string) => `p50 ${p50}, p95 ${p95}, p99 ${p99}`;
export const period = "Rates, failures and handling times cover the last 5 full minutes of data.";
export const problems = "Problems";
export const since = "first seen";

// Charts
export const depthChart = "Queued and oldest age";
export const depthLabel = "Queued messages and oldest age over time";
export const depthMeaning = "Maximum number of queued messages in the interval";
export const oldestMeaning =
  "Maximum age of the oldest due message in the interval; RabbitMQ reports no ages";
export const noDepth = "No worker measured the queue in this period.";
export const throughput = "Throughput and failures";
export const throughputLabel = "Messages per second over time";
export const handled = "Handled";
export const handledMeaning = "Handled successfully, per second";
export const failed = "Failed";
export const failedMeaning = "Failed attempts, per second";
export const deadLettered = "Dead-lettered";
export const deadLetteredMeaning = "New dead letters, per second";
export const timesChart = "Handling time";
export const timesLabel = "Handling time over time";
export const p50Name = "p50";
export const p95Name = "p95";
export const p99Name = "p99";
export const timesMeaning = (share: string) => `${share} of the attempts took no longer`;
export const noData = "No worker reported an attempt in this period.";
export const gaps = "Gaps: no worker reported data.";
export const started = (version: string) => `${version} started`;

// Workers
export const workers = "Workers";
export const workersTable = "Workers of the queue";
export const worker = "Worker";
export const host = "Host";
export const process = (id: number) => `process ${id}`;
export const version = "Version";
export const startedAt = "Started";
export const status = "Status";
export const activity = "Activity";
export const noWorkers = "No worker consumes this queue.";
export const noWorkersHint = "Its messages wait until you start a worker: outbox worker.";

// Attempts
export const attemptsTitle = "Attempts";
export const attemptOrder = "Order of attempts";
export const attemptOrders = { latest: "Latest", slowest: "Slowest" };
export const attemptsTable = "Attempts of the handler";
export const attemptsHead = ["Message", "Outcome", "Handling time", "Waited", "Attempt", "Ended", "Error"];
export const noAttemptsListed = "No attempt in the last day.";
export const noAttemptsHint =
  "Attempts come from the history, which workers write unless OUTBOX_HISTORY is off.";

// Links
export const groups = "Failure groups";
export const noGroups = "No open dead letters.";
export const openCount = (count: string) => `${count} open`;
export const allDeadLetters = "All dead letters of the queue";
export const outboxMessages = "Messages in the outbox for this queue";
