"""What the engine reports to its observers. Each event is a fact; what becomes of it (a counter, a span, a line) is theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from outbox.core.message import Message, light_value
from outbox.core.outcome import DeliveryOutcome, Failure, RelayOutcome


@light_value()
class SentMessage:
    """One message that left the outbox: its id, its routing key, how long it was in the table, and its chain, where known.

    `scheduled` is the part of its age in which it was not due, because its publisher wanted it sent later.
    """

    id: str
    routing_key: str
    age: timedelta
    tracking_ids: tuple[str, ...] = ()
    scheduled: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSent:
    """Messages were confirmed by the broker (or handed over in the database) and settled; the commit is done."""

    exchange_name: str
    messages: Sequence[SentMessage]


class SendFailureType(StrEnum):
    """Why a message was not sent."""

    REFUSED = "refused"
    UNROUTABLE = "unroutable"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFailed:
    """One message was not sent; `outcome` says what becomes of it (retry, parked as dead, held, returned).

    `was_held`: it was unroutable before, and this is another probe. `tracking_ids` are its chain, where that is known.
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
    """A routing key, or a queue that is addressed directly, takes no messages, though the broker answers."""

    exchange_name: str
    routing_key: str
    queue: str | None
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteResumed:
    """A route that was stalled takes messages again, or nothing waits for it any more."""

    exchange_name: str
    routing_key: str
    queue: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinished:
    """One claim-send-settle round with `taken` messages ended after `duration`."""

    exchange_name: str
    taken: int
    duration: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogMeasured:
    """How many messages are unsent, and how long the oldest that is due has been so (None: none is due)."""

    exchange_name: str
    unsent: int
    oldest_due: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStarted:
    """A relay took up its work."""

    exchange_name: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStopped:
    """A relay has drained what it had in flight."""

    exchange_name: str
    table: str


class WakeMode(StrEnum):
    """How a sleeper learns of new rows."""

    LISTENING = "listening"
    POLLING = "polling"


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeModeChanged:
    """LISTEN delivers, or it does not and the sleeper polls; `reason` says why."""

    channel: str
    mode: WakeMode
    reason: str


class Dependency(StrEnum):
    """The servers that come and go."""

    BROKER = "broker"
    DATABASE = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyLost:
    """A server is away, or refuses, for a reason that is new; its user backs off and comes back by itself.

    `timed_out`: it is there, and a statement took longer than its limit, which the reason names.
    """

    dependency: Dependency
    reason: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyRestored:
    """A server that was away answers again."""

    dependency: Dependency


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp:
    """Sent rows older than the retention were deleted."""

    table: str
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStarted:
    """This process does maintenance now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStopped:
    """This process does maintenance no longer: it ends, or another one has taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyDone:
    """A duty of maintenance changed so many rows, or tables."""

    duty: str
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyFailed:
    """A duty of maintenance could not be done; it is tried again at its next time, and the others go on."""

    duty: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStarted:
    """A consumer takes messages from its queue, for the function that `handler` names."""

    queue: str
    exchange_name: str
    binding_key: str
    handler: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopped:
    """A consumer takes no more messages."""

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
    """How a delivery ended, as the metric `outbox_messages_processed_total` names it."""

    SUCCESS = "success"
    FAILED = "failed"
    REJECTED = "rejected"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """A delivery was settled: what came of it, and how long the handler ran."""

    queue: str
    exchange_name: str
    message: Message
    attempt: int
    status: ProcessingStatus
    outcome: DeliveryOutcome
    duration: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A message had been handled before, as the inbox says: it is done without another call of the handler."""

    queue: str
    exchange_name: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailed:
    """A handler failed with a batch of `messages`, which are now handled one by one; nothing is spent by that."""

    queue: str
    exchange_name: str
    messages: Sequence[Message]
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleFailed:
    """An outcome could not be recorded: the lease ran out or the channel closed. The message will come again."""

    queue: str
    exchange_name: str
    message_id: str
    reason: str


class IsolationStep(StrEnum):
    """Where a poison message is on its way to running alone."""

    WAITING = "waiting"
    """For handlers that run; no other one begins meanwhile, for `limit` at most."""
    RUNNING = "running"
    """Alone, for `limit` at most."""
    POSTPONED = "postponed"
    """By `limit`, because other handlers did not end in time; they go on."""
    ENDED = "ended"
    """It runs no more; others go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonIsolated:
    """A message that workers died of too often takes a step towards running alone."""

    queue: str
    exchange_name: str
    message: Message
    step: IsolationStep
    limit: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersAbandoned:
    """A worker ends, and so many calls of a handler do not: cancelled, they went on, or they run in threads."""

    queue: str
    exchange_name: str
    handler: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettersMeasured:
    """How many dead letters a queue has, at the broker and archived."""

    queue: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMeasured:
    """How many messages wait in a queue for a worker, and how long the first has been due (None: not known)."""

    queue: str
    depth: int
    oldest_due: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A relay (`queue` None), or a worker's consumer of `queue`, takes nothing new, because an operator asked for it."""

    exchange_name: str
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The pause is over."""

    exchange_name: str
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitOpened:
    """A consumer handles nothing for a while, because its handler failed too often in a way that it pauses on."""

    queue: str
    exchange_name: str
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitClosed:
    """A message was handled after such a pause, and the consumer goes on."""

    queue: str
    exchange_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLost:
    """So many facts were not written to the history, `reason` says why; the messages are not concerned."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Dead letters of a queue were recorded in the database, and the broker may forget them."""

    queue: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthJudged:
    """The verdict on the installation: its status, `ok`, `warning` or `error`, and how many findings there are of each code."""

    status: str
    findings: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationMeasured:
    """Figures of the whole installation: components by kind and status, unsent messages by state, and what waits in queues.

    `queues` is None where the broker did not answer. `oldest_transaction` is the age of the transaction that has kept vacuum
    from removing dead rows for the longest; `dead_rows` are those of each table.
    """

    components: Mapping[tuple[str, str], int]
    messages: Mapping[str, int]
    queues: Sequence[QueueMeasured] | None
    oldest_transaction: timedelta
    dead_rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something works, but not as well as it could; `text` names it and the fix."""

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
