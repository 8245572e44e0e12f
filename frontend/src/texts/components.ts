// Texts of the components page, with pauses.

import { capitalize, number, plural } from "~/lib/format";

// The list
export const title = "Components";
export const next = "Next component";
export const previous = "Previous component";
export const close = "Close the details";
export const component = "Component";
export const status = "Status";
export const activity = "Activity";
export const lastHeartbeat = "Last heartbeat";
export const host = "Host";
export const version = "Version";
export const gone = "gone";
export const forTime = "for";
export const lastErrorShort = "last error";
export const process = (id: number) => `process ${id}`;
export const all = "All";
export const relays = "Relays";
export const workers = "Workers";
export const archivers = "Archivers";
export const maintenance = "Maintenance";
export const pauseSomething = "Pause a relay, worker or queue";
export const pauseButton = "Pause …";
export const kinds = "Kinds of components";
export const fresh = (count: number) => `${plural(count, "new component")} · Show`;
export const noArchiver = "No archivers.";
export const noArchiverHint =
  "With RabbitMQ, an archiver copies dead letters into the database. Start one with: outbox archiver.";
export const empty = "No heartbeats.";
export const emptyKind = (kind: string) =>
  kind === "maintenance" ? "No maintenance processes." : `No ${kind}s.`;
export const emptyHint =
  "Relays publish messages from the outbox; workers handle them. Start them with: outbox relay, outbox worker. Stopped components stay listed for a day.";

// Consumers of a worker
export const consumersUnknown = "The worker did not report its queues.";
export const consumers = "Consumers";
export const queue = "Queue";
export const bindingKey = "Binding key";
export const prefetch = "Prefetch";
export const handler = "Handler";
export const retriesAfter = "Retries after";
export const schema = "Schema";
export const schemaTitle = (queue: string) => `JSON schema of message bodies for ${queue}`;
export const copySchema = "Copy schema";
export const copy = "Copy";
export const schemaRetry = "Failed to load · Try again";
export const anyBody = "any";
export const inBatches = "in batches";
export const oneByOne = "one at a time";
export const inKeyOrder = "ordered by key";
export const deduplicated = "deduplicated by the inbox";
export const timeout = (duration: string) => `timeout ${duration}`;
export const delaysOrComputed = (delays: string) => `${delays}, or computed`;
export const computed = "computed";

// Details
export const startedAt = "Started";
export const heartbeatEvery = "Heartbeat every";
export const lastSent = "Last sent";
export const destination = "Destination";
export const wakeUp = "Wake-up";
export const appliedPauses = "Applied pauses";
export const inFlight = "In flight";
export const unsentLabel = "Unsent";
export const sinceStart = (counted: string) => `${counted} since start`;
export const waitingFor = (what: string) => `waiting for the ${what}`;
export const lastError = "Last error";
export const aboutQueue = (queue: string) => `, for ${queue}`;
export const deadLettersOf = (queue: string) => `Dead letters of ${queue}`;
export const resume = "Resume";
export const pause = "Pause";

// Pausing
export const aQueue = "A queue";
export const relayMeaning = "Relays stop publishing; messages wait in the outbox.";
export const workerMeaning =
  "Workers take no new messages; messages wait in their queues or go to other workers.";
export const queueMeaning = "No worker takes new messages from the queue; they wait in the queue.";
export const paused = (target: string) => `Paused ${target}.`;
export const withInFlight = (meaning: string) => `${meaning} Messages in flight are finished.`;
export const pauseTarget = (target: string) => `Pause ${target}`.trim();
export const scope = "Scope";
export const chooseScope = "Choose …";
export const scopeMeaning = "A pause covers relays, workers or one queue, until it ends or is resumed.";
export const scopeRequired = "Choose what to pause.";
export const reason = "Reason";
export const reasonHint = "Shown next to the pause and in the audit log.";
export const ends = "Ends";
export const endTime = (zone: string) => `Time, ${zone}`;
export const nameOfScope = (scope: string) => `Name of the ${scope}`;
export const emptyForAll = (scope: string) => `Leave empty for all ${scope}s`;
export const queueHint = "Queue to pause";
export const appliesLater = "No running component matches. The pause applies to components that start later.";
export const appliesTo = (count: number, kind: string, names: string) =>
  `Applies to ${plural(count, kind)}: ${names}.`;
export const queueRequired = "Enter a queue.";
export const futureRequired = "Enter a time in the future.";
export const pausedCount = (count: number) => `Paused: ${plural(count, "pause")}`;
export const requestedBy = (actor: string) => `Paused by ${actor}`;
export const endsAt = "ends";
export const untilResumed = "until resumed";
export const resumeTarget = (target: string) => `Resume ${target}`;
export const resumeMore = "Resume …";
export const noneAffected = "no running component; applies to components that start later";
export const applied = "applied";
export const appliedBy = (applied: number, all: number) => `applied by ${applied} of ${all}`;
export const takesNothing = "takes no new messages";
export const finishing = "finishing messages in flight";
export const silent = "lost, no report";
export const resumed = (target: string) => `Resumed ${target}.`;
export const alreadyResumed = (target: string) => `${capitalize(target)} was already resumed.`;
export const stillPaused = (done: string, pause: string) =>
  `${done} Part of it is still paused by the pause of ${pause}.`;
export const pausedBy = "Paused by";
export const pausedAt = "Paused";
export const noReason = "none";
export const endsAutomatically = "Ends";
export const resumeReason = "Reason (optional)";

// Activity
export const stoppedCleanly = "Stopped cleanly";
export const failingQueue = (queue: string) => `paused consuming from ${queue}: its handler keeps failing`;
export const pausedQueues = (queues: string) => `${queues} paused`;
export const inFlightCount = (count: number) => `${number(count)} in flight`;
export const lastReported = (what: string) => `last reported: ${what}`;
export const oldestDue = (duration: string) => `, oldest due for ${duration}`;
export const toDestination = (name: string) => `to ${name}`;
export const unsent = (count: number, since: string) => `${number(count)} unsent${since}`;

// When a pause ends
export const whenResumed = "When resumed";
export const in15Minutes = "In 15 minutes";
export const inAnHour = "In 1 hour";
export const in4Hours = "In 4 hours";
export const inADay = "In 1 day";
export const atATime = "At a time …";

export const resumeHint = "It resumes immediately.";
export const queues = (count: number) => plural(count, "queue");
export const noRetries = "none";
