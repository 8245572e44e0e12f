// Texts of the overview.

import { number, plural, span } from "~/lib/format";

export const title = "Overview";

// Warnings at the top
export const shownFrom = "The page shows data from";
export const databaseDown = "The database does not respond.";
export const brokerDownHint = (error: string | null) => `Queue depths are unknown. ${error ?? ""}`;
export const brokerDown = "The broker does not respond.";
export const pausedBy = (actor: string) => `by ${actor}, `;
export const endsAt = "Ends at";
export const showPauses = "Show pauses";
export const pauseApplied = "No messages are in flight.";
export const pausePending = "Some messages are still in flight.";
export const pauseUnmet =
  "No running component is affected. The pause applies to components that start later.";
export const queuePaused = (name: string) => `The queue ${name} is paused`;
export const onePaused = (scope: string, name: string) => `The ${scope} ${name} is paused`;
export const allPaused = (scope: string) => `All ${scope}s are paused`;

// Charts
export const backlogChart = "Backlog and oldest age";
export const throughputChart = "Throughput";
export const backlog = "Backlog";
export const backlogMeaning = "Maximum number of unsent messages in the interval";
export const oldestAge = "Oldest age";
export const oldestAgeMeaning = "Maximum age of the oldest due message in the interval";
export const backlogLabel = "Backlog and oldest age over time";
export const backlogEmpty =
  "No relay reported data in this period. Data appears a minute after a relay starts, and is kept after it stops.";
export const backlogGaps = "Gaps: no data reported.";
export const longerSteps = (why: string) => `Intervals are longer because ${why}.`;
export const incoming = "In";
export const inMeaning = "Published to the outbox, per second";
export const outgoing = "Out";
export const outMeaning = "Sent to the broker, per second";
export const handled = "Handled";
export const handledMeaning = "Handled by workers, per second";
export const deadLettered = "Dead-lettered";
export const deadLetteredMeaning = "New dead letters, per second";
export const throughputLabel = "Messages per second over time";
export const throughputEmpty =
  "No relay or worker reported data in this period. Data appears a minute after one starts, and is kept after it stops.";
export const throughputGaps = "Gaps: no data reported. Workers report only while they handle messages.";

// Failure groups
export const failureGroups = "Top failure groups";
export const allGroups = "All groups";
export const noOpen = "No open dead letters.";
export const noOpenHint = "Messages that fail for good are grouped here by error.";
export const deadLettersOf = (count: number, title: string) =>
  `${plural(count, "dead letter")} of “${title}”`;
export const last = "Last";
export const open = "open";
export const requeueGroup = (title: string) => `Requeue the group ${title}`;
export const requeue = "Requeue";
export const failuresInDay = (sum: number, latest: number) =>
  `${plural(sum, "failure")} in the last 24 hours, ${number(latest)} in the last hour`;

// Running operations
export const runningOperations = "Running operations";
export const allOperations = "All operations";
export const noOperations = "No running operations.";
export const noOperationsHint =
  "Requeueing many dead letters starts an operation. Its progress appears here.";
export const progressOf = (name: string) => `Progress: ${name}`;
export const progress = (settled: number, total: number, remaining: number | null) =>
  `${number(settled)} of ${number(total)} done${remaining === null ? "" : `, about ${span(remaining)} left`}`;
export const failedAgain = (count: number) => `, ${number(count)} failed again`;

// Figures
export const oldestWaiting = "Oldest waiting";
export const none = "None";
export const ageUnknown = "Not known yet";
export const thresholds = (late: string, overdue: string) => `Late after ${late}, overdue after ${overdue}.`;
export const pending = "pending";
export const estimate = "Estimate. ";
export const sentIn = (duration: string) => `Sent in about ${duration}. `;
export const queuesUnknown = "Queues: no data";
export const countInQueues = (count: number) => `${number(count)} in queues`;
export const inAndOut = "In and out";
export const inUnit = "in";
export const outUnit = "out";
export const deadLetters = "Dead letters";
export const components = "Alive";
export const allOnTime = "All heartbeats on time.";
export const late = (count: number) => `${number(count)} late`;
export const lost = (count: number, period: string) => `${number(count)} lost in the last ${period}`;

// Destinations
export const destinations = "Destinations";
export const unsent = "unsent";
export const oldestFor = (duration: string) => `oldest due for ${duration}`;
export const noRelay = "no relay";
export const relaysUnknown = "relays unknown";
export const relaysRunning = (count: number) => plural(count, "relay");

// Health
export const problems = "Problems";
export const since = "first seen";
export const showMoreFindings = (count: number) => `Show ${number(count)} more like these`;
export const showFewerFindings = "Show fewer";
export const nothingPending = "Nothing pending. ";
export const allOnSchedule = "All messages on time. ";
export const overdue = "Overdue";
export const lateWord = "Late";
export const onTime = "On time";
export const nothingWaiting = "Nothing waiting";
export const nothingDue = "Nothing due yet";
export const collecting = "Collecting data…";
export const noTraffic = "No traffic.";
export const growing = "Backlog is growing.";
export const shrinking = "Backlog is shrinking.";
export const keepsUp = "Backlog is small.";
export const lastSent = (ago: string) => `Last sent ${ago} ago.`;
export const nothingSent = "No messages sent in the last hour.";
export const sentJustNow = "Last sent less than a minute ago.";
export const lastSentAbout = (ago: string) => `Last sent about ${ago} ago.`;
export const newInHour = (count: string) => `${count} new in the last hour`;
export const noneNew = "none";
export const operationOn = (action: string, total: number) => `${action} ${plural(total, "dead letter")}`;
export const relays = (count: number) => (count === 1 ? "relay" : "relays");
export const workers = (count: number) => (count === 1 ? "worker" : "workers");
