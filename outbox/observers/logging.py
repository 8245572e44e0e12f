"""Log lines on the logger "outbox": one line for each event, with message id and routing key, without bodies and secrets.

DEBUG: polling and measurements. INFO: published and processed messages. WARNING: retries, rejections, dead letters, lost
servers. ERROR: unreadable messages and unexpected failures.
"""

import logging
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, assert_never, get_args

from outbox.core.events import (
    Advice,
    Archived,
    BacklogMeasured,
    BatchFailed,
    BatchSent,
    CircuitClosed,
    CircuitOpened,
    CleanedUp,
    ConsumerStarted,
    ConsumerStopped,
    DeadLettersMeasured,
    DependencyLost,
    DependencyRestored,
    Duplicate,
    DutyDone,
    DutyFailed,
    Event,
    HandlersAbandoned,
    HealthJudged,
    HistoryLost,
    InstallationMeasured,
    IsolationStep,
    MaintenanceStarted,
    MaintenanceStopped,
    Paused,
    PoisonIsolated,
    Processed,
    QueueMeasured,
    Received,
    RelayStarted,
    RelayStopped,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SendFailed,
    SentMessage,
    SettleFailed,
    WakeMode,
    WakeModeChanged,
)
from outbox.core.fingerprint import find_frame
from outbox.core.outcome import Cause, Dead, Done, Failure, Held, Postponed, Retry, Returned, Stalled
from outbox.core.tracking import get_handled
from outbox.core.urls import redacted
from outbox.engine.observers import SERVED

_log = logging.getLogger("outbox")

_TEXT_LIMIT = 500
_NAME_LIMIT = 255
"""Maximum length of a reason, and of an id or routing key, in a line. The table has no limit for them."""
_IDS_LIMIT = 16
"""Maximum number of tracking ids in a line: the root and the nearest ancestors."""
FIELDS = (
    "event",
    "database",
    "message_id",
    "routing_key",
    "queue",
    "exchange_name",
    "attempt",
    "outcome",
    "tracking_ids",
    "trace_id",
    "span_id",
)
"""Extra attributes of log records, for formatters with structured output."""


class LogFields(logging.Filter):
    """Adds `message_id`, `queue`, `trace_id`, `span_id` and `database` to each record, as far as known; it filters nothing out.

    Add it to a logging handler: `handler.addFilter(LogFields())`. While a message is handled, all records of the handler's task
    or thread get the message's id and queue, and in a traced process those of the current span. If the process serves several
    databases, records of a component get the name of its database. Other records get None. A field that a record already has
    stays as it is.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Sets the fields. Returns True."""
        message_id, queue = get_handled() or (None, None)
        ids: tuple[str, str] | None = None
        if "opentelemetry.trace" in sys.modules:  # without it, no span can be current
            from outbox.observers.opentelemetry import current_ids

            ids = current_ids()
        trace_id, span_id = ids or (None, None)
        found = {"message_id": message_id, "queue": queue, "trace_id": trace_id, "span_id": span_id, "database": _database()}
        for name, value in found.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class LoggingObserver:
    """Logs a line for each event whose level is enabled."""

    def notify(self, event: Event) -> None:
        if (line := _LINES.get(type(event))) is not None:
            if _log.isEnabledFor(line.level):
                _write(event, line.level, line.text, *line.values(event))
            return
        match event:
            case Processed():
                _log_processed(event)
            case BatchSent() if _log.isEnabledFor(logging.INFO):
                text = "published %s to exchange %s, %s after it was %s"
                for message in event.messages:
                    subject = _subject(message.id, message.routing_key)
                    waited, since = _seconds(message.age - message.scheduled), "due" if message.scheduled else "written"
                    _write(event, logging.INFO, text, subject, event.exchange_name, waited, since, about=message)
            case SendFailed():
                _log_failed_send(event)
            case PoisonIsolated():
                _log_isolation(event)
            case WakeModeChanged():
                level = logging.INFO if event.mode is WakeMode.LISTENING else logging.WARNING
                _write(event, level, "%s on channel %s: %s", event.mode.value, event.channel, _safe(event.reason))
            case DependencyLost():
                problem = "the %s took too long" if event.timed_out else "lost the %s"
                text = f"{problem}, trying again: %s"
                _write(event, logging.WARNING, text, event.dependency.value, _safe(event.reason))


def _log_processed(event: Processed) -> None:
    match event.outcome:
        case Done():
            if _log.isEnabledFor(logging.INFO):
                _write(event, logging.INFO, "processed %s in %s", _delivery(event), _seconds(event.duration))
        case Retry(delay, failure):
            text = "attempt %d at %s failed, again in %s: %s"
            _write(event, logging.WARNING, text, event.attempt, _delivery(event), _seconds(delay), _located(failure))
        case Dead(cause, failure):
            level = logging.ERROR if cause in (Cause.UNDECODABLE, Cause.CRASHED) else logging.WARNING
            text = "attempt %d at %s dead-lettered it, %s: %s"
            _write(event, level, text, event.attempt, _delivery(event), cause.value, _located(failure))
        case Returned():
            _write(event, logging.DEBUG, "gave back %s", _delivery(event))
        case Postponed(delay):
            _write(event, logging.DEBUG, "postponed %s for %s", _delivery(event), _seconds(delay))
        case _:
            assert_never(event.outcome)


def _log_failed_send(event: SendFailed) -> None:
    match event.outcome:
        case Retry(delay):
            level, end = logging.WARNING, f"retrying in {_seconds(delay)}"
        case Dead():
            level, end = logging.WARNING, "parked"
        case Held(probe_after):
            # One message per routing key probes from time to time, and the others wait for it. Only the first failure is a
            # warning: later probes report nothing new.
            level = logging.DEBUG if probe_after is None or event.was_held else logging.WARNING
            end = "held until a queue is bound"
        case Stalled():
            level, end = logging.DEBUG, "waits until its route accepts messages again"
        case Returned():
            level, end = logging.DEBUG, "stays pending"
        case Done():
            level, end = logging.WARNING, "dropped"
        case _:
            assert_never(event.outcome)
    if _log.isEnabledFor(level):
        subject, failure = _subject(event.message_id, event.routing_key), event.failure
        # The type of a failure of the relay's own is that of the event.
        reason = failure.message if failure.type == event.type.value else failure
        _write(event, level, "%s %s, %s: %s", event.type.value, subject, end, _safe(reason))


def _log_isolation(event: PoisonIsolated) -> None:
    level, limit = logging.WARNING, _seconds(event.limit or timedelta(0))
    match event.step:
        case IsolationStep.WAITING:
            text = f"waits up to {limit} for the running handlers; no other handler starts meanwhile"
        case IsolationStep.RUNNING:
            text = f"runs alone for up to {limit}; other messages wait meanwhile"
        case IsolationStep.POSTPONED:
            text = f"is postponed for {limit}, because other handlers did not end in time; they continue"
        case IsolationStep.ENDED:
            level, text = logging.INFO, "no longer runs alone; other messages continue"
        case _:
            assert_never(event.step)
    subject = _subject(event.message.id, event.message.routing_key)
    _write(event, level, "poison message %s of queue %s %s", subject, event.queue, text)


@dataclass(frozen=True, slots=True)
class _Line:
    """Log line of an event type: level, text, and the values in the text."""

    level: int
    text: str
    values: Callable[[Any], tuple[object, ...]]


E = TypeVar("E", bound=Event)


def _line(kind: type[E], level: int, text: str, values: Callable[[E], tuple[object, ...]]) -> tuple[type[E], _Line]:
    return kind, _Line(level, text, values)


def _route(event: RouteStalled | RouteResumed) -> str:
    if event.queue is not None:
        return f"queue {_one_line(event.queue, limit=_NAME_LIMIT)!r}"
    return f"routing key {event.routing_key[:_NAME_LIMIT]!r}"


def _part(event: Paused | Resumed) -> str:
    return f"the relay to exchange {event.exchange_name}" if event.queue is None else f"queue {event.queue}"


_LINES: Mapping[type, _Line] = dict(
    (
        # --- relay
        _line(
            RelayStarted,
            logging.INFO,
            "relay started: %s to %s",
            lambda e: (e.table, e.destination or f"exchange {e.exchange_name}"),
        ),
        _line(RelayStopped, logging.INFO, "relay stopped: %s to exchange %s", lambda e: (e.table, e.exchange_name)),
        _line(
            RouteStalled,
            logging.WARNING,
            "%s of exchange %s accepts no messages: %s; "
            "the others continue, and one of its messages is sent again from time to time",
            lambda e: (_route(e), e.exchange_name, _safe(e.failure)),
        ),
        _line(RouteResumed, logging.INFO, "%s of exchange %s accepts messages again", lambda e: (_route(e), e.exchange_name)),
        _line(
            RoundFinished,
            logging.DEBUG,
            "round of %d messages to exchange %s took %s",
            lambda e: (e.taken, e.exchange_name, e.duration),
        ),
        _line(
            BacklogMeasured,
            logging.DEBUG,
            "backlog of exchange %s: %d unsent, oldest due for %s",
            lambda e: (e.exchange_name, e.unsent, e.oldest_due),
        ),
        _line(CleanedUp, logging.DEBUG, "deleted %d sent rows of %s", lambda e: (e.deleted, e.table)),
        # --- maintenance
        _line(MaintenanceStarted, logging.INFO, "maintenance runs in this process now", lambda _: ()),
        _line(MaintenanceStopped, logging.INFO, "maintenance no longer runs in this process", lambda _: ()),
        _line(DutyDone, logging.INFO, "maintenance: %s, %d", lambda e: (e.duty, e.changed)),
        _line(
            DutyFailed,
            logging.ERROR,
            "maintenance: %s failed and will be retried: %s",
            lambda e: (e.duty, _safe(e.failure)),
        ),
        # --- worker; `str` because a binding key may be an enum member
        _line(
            ConsumerStarted,
            logging.INFO,
            "consumes queue %s, bound to exchange %s with %r",
            lambda e: (e.queue, e.exchange_name, str(e.binding_key)),
        ),
        _line(
            ConsumerStopped,
            logging.DEBUG,
            "queue %s of exchange %s no longer consumed",
            lambda e: (e.queue, e.exchange_name),
        ),
        _line(Received, logging.DEBUG, "received %s, attempt %d", lambda e: (_delivery(e), e.attempt)),
        _line(Duplicate, logging.DEBUG, "skipped %s, which was processed before", lambda e: (_delivery(e),)),
        _line(
            BatchFailed,
            logging.WARNING,
            "a batch of %d messages of queue %s failed, handling them one by one: %s",
            lambda e: (len(e.messages), e.queue, _located(e.failure)),
        ),
        _line(
            CircuitOpened,
            logging.WARNING,
            "queue %s of exchange %s pauses for %s: its handler fails with an error of `pause_on`",
            lambda e: (e.queue, e.exchange_name, _seconds(e.pause)),
        ),
        _line(
            CircuitClosed,
            logging.INFO,
            "queue %s of exchange %s continues: its handler succeeds again",
            lambda e: (e.queue, e.exchange_name),
        ),
        _line(
            SettleFailed,
            logging.WARNING,
            "the outcome of %s of queue %s was not recorded: %s",
            lambda e: (_one_line(e.message_id, limit=_NAME_LIMIT), e.queue, _safe(e.reason)),
        ),
        _line(
            HandlersAbandoned,
            logging.ERROR,
            "%d calls of the handler %s of queue %s did not end when they were cancelled, and are abandoned",
            lambda e: (e.count, e.handler, e.queue),
        ),
        _line(Archived, logging.INFO, "archived %d dead letters of queue %s", lambda e: (e.count, e.queue)),
        _line(DeadLettersMeasured, logging.DEBUG, "queue %s has %d dead letters", lambda e: (e.queue, e.count)),
        _line(
            QueueMeasured,
            logging.DEBUG,
            "queue %s: %d messages wait, the first due for %s",
            lambda e: (e.queue, e.depth, e.oldest_due),
        ),
        # --- all components
        _line(DependencyRestored, logging.INFO, "the %s is back", lambda e: (e.dependency.value,)),
        _line(Paused, logging.INFO, "paused: %s takes nothing new", lambda e: (_part(e),)),
        _line(Resumed, logging.INFO, "%s: %s", lambda e: ("stopped while paused" if e.stopping else "resumed", _part(e))),
        _line(
            HealthJudged,
            logging.DEBUG,
            "health of the installation: %s, %d findings",
            lambda e: (e.status, sum(e.findings.values())),
        ),
        _line(
            InstallationMeasured,
            logging.DEBUG,
            "measured the installation: %d unsent messages, %d queues",
            lambda e: (sum(e.messages.values()), len(e.queues or ())),
        ),
        _line(
            HistoryLost,
            logging.WARNING,
            "%d facts were not written to the history: %s",
            lambda e: (e.count, _safe(e.reason)),
        ),
        _line(Advice, logging.WARNING, "%s", lambda e: (_safe(e.text),)),
    )
)

_NAMES = {kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower() for kind in get_args(Event)}


def _write(event: Event, level: int, text: str, *values: object, about: SentMessage | None = None) -> None:
    """Logs the line with the fields of `FIELDS` as attributes; `about` is one message of an event about several.

    The fields identify the event and the message. They hold names and ids only, nothing of a message's content.
    """
    if not _log.isEnabledFor(level):
        return
    message = about or getattr(event, "message", None)
    found = {name: getattr(event, name, None) for name in ("queue", "exchange_name", "routing_key", "message_id", "attempt")}
    found["tracking_ids"] = getattr(message or event, "tracking_ids", None)
    if message is not None:
        found |= {"message_id": message.id, "routing_key": message.routing_key}
    if (outcome := getattr(event, "outcome", None)) is not None:
        found["outcome"] = type(outcome).__name__.lower()
    fields: dict[str, object] = {"event": _NAMES[type(event)]}
    if (database := _database()) is not None:
        fields["database"] = database
    for name, value in found.items():
        if isinstance(value, str):
            fields[name] = value[:_NAME_LIMIT]
        elif isinstance(value, tuple) and value:
            ids = value if len(value) <= _IDS_LIMIT else (*value[:1], *value[1 - _IDS_LIMIT :])
            fields[name] = [str(each)[:_NAME_LIMIT] for each in ids]
        elif value is not None and value != ():
            fields[name] = value
    _log.log(level, text, *values, extra=fields, stacklevel=2)


def _database() -> str | None:
    served = SERVED.get()
    return None if served is None else served.name


def _delivery(event: Received | Processed | Duplicate) -> str:
    return f"{_subject(event.message.id, event.message.routing_key)} of queue {event.queue}"


def _subject(message_id: str, routing_key: str) -> str:
    return f"{_one_line(message_id, limit=_NAME_LIMIT)} {routing_key[:_NAME_LIMIT]!r}"


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3f} s"


def _located(failure: Failure) -> str:
    """A failure of a handler, and the place in the application's code where it was raised."""
    frame = find_frame(failure)
    return _safe(failure) + (f" ({_safe(f'{frame.path}:{frame.line} in {frame.function}')})" if frame else "")


def _safe(reason: object) -> str:
    """Makes foreign text, such as an error message, safe to log: one line, limited length, no passwords of URLs."""
    return _one_line(" ".join(redacted(str(reason)).split()), limit=_TEXT_LIMIT)


def _one_line(text: str, *, limit: int) -> str:
    """Cuts and escapes text, so that line breaks or control characters cannot forge a second log line."""
    text = text if len(text) <= limit else f"{text[:limit]}…"
    return text if text.isprintable() else ascii(text)
