"""Events that the engine reports to its observers, which turn them into metrics, spans and log lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from outbox.core.codec import parse_traceparent
from outbox.core.message import Message, light_value
from outbox.core.outcome import DeliveryOutcome, Failure, RelayOutcome


@light_value()
class SpanIds:
    """The ids of a sampled span as hexadecimal text, 32 and 16 digits."""

    trace_id: str
    span_id: str


@light_value()
class SentMessage:
    """One sent message: its id, routing key, time in the table, and where known its tracking ids and `traceparent` header.

    `scheduled` is the part of its age before it was due.
    """

    id: str
    routing_key: str
    age: timedelta
    tracking_ids: tuple[str, ...] = ()
    scheduled: timedelta = timedelta(0)
    traceparent: str | None = None

    @property
    def sampled_span(self) -> SpanIds | None:
        """The span that published the message; None if its trace is not known, or not sampled."""
        ids = None if self.traceparent is None else parse_traceparent(self.traceparent)
        return None if ids is None else SpanIds(*ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSent:
    """Messages were confirmed by the broker (or handed over in the database), settled and committed."""

    exchange_name: str
    messages: Sequence[SentMessage]


class SendFailureType(StrEnum):
    """Why a message was not sent."""

    REFUSED = "refused"
    UNROUTABLE = "unroutable"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFailed:
    """One message was not sent. `outcome` is the consequence (retried, parked as dead, held, returned).

    `was_held`: it was unroutable before, and this is another probe. `tracking_ids` are its chain, where known.
    """

    exchange_name: str
    message_id: str
    routing_key: str
    type: SendFailureType
    failure: Failure
    outcome: RelayOutcome
    was_held: bool = False
    tracking_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStalled:
    """A routing key, or a queue that is addressed directly, accepts no messages, although the broker is available."""

    exchange_name: str
    routing_key: str
    queue: str | None
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteResumed:
    """A stalled route accepts messages again, or no message waits for it any more."""

    exchange_name: str
    routing_key: str
    queue: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinished:
    """One claim-send-settle round with `taken` messages ended after `duration`, with the messages that were sent or failed."""

    exchange_name: str
    taken: int
    duration: timedelta
    sent: Sequence[SentMessage] = ()
    failed: Sequence[SendFailed] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogMeasured:
    """The number of unsent messages, and how long the oldest due message has been due (None: none is due)."""

    exchange_name: str
    unsent: int
    oldest_due: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStarted:
    """A relay has started. `destination` describes the broker and the exchange that it sends to."""

    exchange_name: str
    table: str
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStopped:
    """A relay has drained its rounds in flight and stopped."""

    exchange_name: str
    table: str


class WakeMode(StrEnum):
    """How a sleeper detects new rows."""

    LISTENING = "listening"
    POLLING = "polling"


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeModeChanged:
    """A sleeper switched between listening and polling, which it does while LISTEN does not deliver. `reason` says why."""

    channel: str
    mode: WakeMode
    reason: str


class Dependency(StrEnum):
    """The servers that Outbox depends on."""

    BROKER = "broker"
    DATABASE = "database"
    BODY_STORE = "body_store"


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyLost:
    """A server is unavailable or refuses, for a new reason. The component backs off and retries.

    `timed_out`: it is available, but a statement exceeded its time limit, which the reason names.
    """

    dependency: Dependency
    reason: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyRestored:
    """A server is available again."""

    dependency: Dependency


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp:
    """Sent rows older than the retention were deleted."""

    table: str
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStarted:
    """This process has acquired the lease and does maintenance now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStopped:
    """This process no longer does maintenance: it stops, or another process has taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyDone:
    """A maintenance duty changed `changed` rows or tables."""

    duty: str
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyFailed:
    """A maintenance duty failed. It is retried at its next interval; other duties continue."""

    duty: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStarted:
    """A consumer has subscribed to its queue. `handler` names its function."""

    queue: str
    exchange_name: str
    binding_key: str
    handler: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopped:
    """A consumer has unsubscribed from its queue."""

    queue: str
    exchange_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A delivery arrived; its handler has not run yet."""

    queue: str
    exchange_name: str
    message: Message
    attempt: int


class ProcessingStatus(StrEnum):
    """The status of a delivery in the metric `outbox_messages_processed_total`."""

    SUCCESS = "success"
    FAILED = "failed"
    REJECTED = "rejected"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """A delivery was settled, with its outcome and the duration of its handler.

    `span` is that of its last attempt, or of the batch of that attempt; None if it was not traced.
    """

    queue: str
    exchange_name: str
    message: Message
    attempt: int
    status: ProcessingStatus
    outcome: DeliveryOutcome
    duration: timedelta
    span: SpanIds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The inbox shows that a message was handled before. It is settled as done without calling the handler."""

    queue: str
    exchange_name: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailed:
    """A handler failed with a batch of `messages`, which are now handled one by one. This uses no attempt."""

    queue: str
    exchange_name: str
    messages: Sequence[Message]
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleFailed:
    """An outcome could not be recorded: the lease expired or the channel closed. The message will be redelivered."""

    queue: str
    exchange_name: str
    message_id: str
    reason: str


class IsolationStep(StrEnum):
    """The steps of running a poison message alone."""

    WAITING = "waiting"
    """It waits for running handlers, at most for `limit`. No other handler starts meanwhile."""
    RUNNING = "running"
    """It runs alone, at most for `limit`."""
    POSTPONED = "postponed"
    """It is postponed by `limit`, because other handlers did not end in time. Other handlers start again."""
    ENDED = "ended"
    """It has ended. Other handlers start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonIsolated:
    """A message that crashed workers too often takes a step of running alone."""

    queue: str
    exchange_name: str
    message: Message
    step: IsolationStep
    limit: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersAbandoned:
    """A worker ends while `count` calls of a handler still run: they ignored their cancellation, or run in threads."""

    queue: str
    exchange_name: str
    handler: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettersMeasured:
    """The number of dead letters of a queue, at the broker and archived."""

    queue: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMeasured:
    """The number of messages that wait in a queue, and how long the first one has been due (None: unknown)."""

    queue: str
    depth: int
    oldest_due: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A relay (`queue` None), or a worker's consumer of `queue`, takes nothing new, because an operator paused it."""

    exchange_name: str
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The pause has ended; or, where `stopping`, the relay or worker ends while it lasts."""

    exchange_name: str
    queue: str | None = None
    stopping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitOpened:
    """A consumer pauses, because its handler failed too often with errors in `pause_on`."""

    queue: str
    exchange_name: str
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitClosed:
    """A message was handled after such a pause, and the consumer resumes."""

    queue: str
    exchange_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLost:
    """`count` facts were not written to the history, for `reason`. The messages are not affected."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Dead letters of a queue were recorded in the database and removed from the broker."""

    queue: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthJudged:
    """The health of the installation: its status (`ok`, `warning` or `error`), and the number of findings of each code."""

    status: str
    findings: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationMeasured:
    """Figures of the whole installation: components by kind and status, unsent messages by state, and what waits in queues.

    `queues` is None where the broker did not answer. `oldest_transaction` is the age of the transaction that has kept vacuum
    from removing dead rows for the longest; `dead_rows` are those of each table. `destinations`: by name, the unsent messages
    and how long the first one has been due; empty if there is only the default one.
    """

    components: Mapping[tuple[str, str], int]
    messages: Mapping[str, int]
    queues: Sequence[QueueMeasured] | None
    oldest_transaction: timedelta
    dead_rows: Mapping[str, int]
    destinations: Mapping[str, tuple[int, timedelta]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something does not work as well as it could. `text` names it and the fix."""

    text: str


Event = (
    BatchSent
    | SendFailed
    | RouteStalled
    | RouteResumed
    | RoundFinished
    | BacklogMeasured
    | RelayStarted
    | RelayStopped
    | WakeModeChanged
    | DependencyLost
    | DependencyRestored
    | CleanedUp
    | MaintenanceStarted
    | MaintenanceStopped
    | DutyDone
    | DutyFailed
    | ConsumerStarted
    | ConsumerStopped
    | Received
    | Processed
    | Duplicate
    | BatchFailed
    | SettleFailed
    | PoisonIsolated
    | HandlersAbandoned
    | DeadLettersMeasured
    | QueueMeasured
    | Archived
    | Paused
    | Resumed
    | CircuitOpened
    | CircuitClosed
    | HistoryLost
    | HealthJudged
    | InstallationMeasured
    | Advice
)
