"""Log lines on the logger "outbox": one line a fact, with the message's id and routing key, without bodies and secrets.

DEBUG: bindings and polling. INFO: what was published and processed. WARNING: retries, rejections, dead letters, servers lost.
ERROR: what could not be read, and what nobody expects.
"""

import logging
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, assert_never

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
    IsolationStep,
    MaintenanceStarted,
    MaintenanceStopped,
    Paused,
    PoisonIsolated,
    Processed,
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
from outbox.core.outcome import Cause, Dead, Done, Held, Postponed, Retry, Returned, Stalled
from outbox.core.urls import redacted

_log = logging.getLogger("outbox")

_TEXT_LIMIT = 500
_NAME_LIMIT = 255
"""Characters of a reason, and of an id or a routing key, that a line shows; the table takes any number of them."""
_IDS_LIMIT = 16
"""Ids of a chain that a line has: the root and the nearest ancestors."""
FIELDS = ("event", "message_id", "routing_key", "queue", "exchange_name", "attempt", "outcome", "tracking_ids")
"""What a record of ours has besides its line, as attributes, for formatters that show it apart."""


class LoggingObserver:
    """Writes a line for each event whose level is on."""

    def notify(self, event: Event) -> None:
        _TELLERS[type(event)](event)


# --- relay -------------------------------------------------------------------------------------------------------------


def _relay_started(event: RelayStarted) -> None:
    _tell(event, logging.INFO, "relay started: %s to exchange %s", event.table, event.exchange_name)


def _relay_stopped(event: RelayStopped) -> None:
    _tell(event, logging.INFO, "relay stopped: %s to exchange %s", event.table, event.exchange_name)


def _batch_sent(event: BatchSent) -> None:
    if not _log.isEnabledFor(logging.INFO):
        return
    for message in event.messages:
        _tell(
            event,
            logging.INFO,
            "published %s to exchange %s, %s after it was written",
            _subject(message.id, message.routing_key),
            event.exchange_name,
            _seconds(message.age),
            about=message,
        )


def _send_failed(event: SendFailed) -> None:
    match event.outcome:
        case Retry(delay):
            level, end = logging.WARNING, f"tried again in {_seconds(delay)}"
        case Dead():
            level, end = logging.WARNING, "parked for good"
        case Held(probe_after):
            # One of its routing key probes from time to time; the others of the key wait for that one, silently. A probe that
            # finds no queue again is no news.
            level = logging.DEBUG if probe_after is None or event.was_held else logging.WARNING
            end = "held until a queue is bound"
        case Stalled():
            level, end = logging.DEBUG, "waits until its route takes messages again"
        case Returned():
            level, end = logging.DEBUG, "stays pending"
        case Done():
            level, end = logging.WARNING, "dropped"
        case _:
            assert_never(event.outcome)
    if _log.isEnabledFor(level):
        _tell(
            event,
            level,
            "%s %s, %s: %s",
            event.type.value,
            _subject(event.message_id, event.routing_key),
            end,
            _safe(event.failure),
        )


def _route_stalled(event: RouteStalled) -> None:
    _tell(
        event,
        logging.WARNING,
        "%s of exchange %s takes no messages: %s; the others go on, and one of its messages is sent again from time to time",
        _route(event),
        event.exchange_name,
        _safe(event.failure),
    )


def _route_resumed(event: RouteResumed) -> None:
    _tell(event, logging.INFO, "%s of exchange %s takes messages again", _route(event), event.exchange_name)


def _route(event: RouteStalled | RouteResumed) -> str:
    if event.queue is not None:
        return f"queue {_one_line(event.queue, limit=_NAME_LIMIT)!r}"
    return f"routing key {event.routing_key[:_NAME_LIMIT]!r}"


def _round_finished(event: RoundFinished) -> None:
    _tell(event, logging.DEBUG, "round of %d messages to exchange %s took %s", event.taken, event.exchange_name, event.duration)


def _backlog_measured(event: BacklogMeasured) -> None:
    _tell(
        event,
        logging.DEBUG,
        "backlog of exchange %s: %d unsent, oldest due for %s",
        event.exchange_name,
        event.unsent,
        event.oldest_due,
    )


def _cleaned_up(event: CleanedUp) -> None:
    _tell(event, logging.DEBUG, "deleted %d sent rows of %s", event.deleted, event.table)


def _maintenance_started(event: MaintenanceStarted) -> None:
    _tell(event, logging.INFO, "maintenance is done by this process now")


def _maintenance_stopped(event: MaintenanceStopped) -> None:
    _tell(event, logging.INFO, "maintenance is done by this process no longer")


def _duty_done(event: DutyDone) -> None:
    _tell(event, logging.INFO, "maintenance: %s, %d", event.duty, event.changed)


def _duty_failed(event: DutyFailed) -> None:
    _tell(event, logging.ERROR, "maintenance: %s failed and is tried again later: %s", event.duty, _safe(event.failure))


def _wake_mode_changed(event: WakeModeChanged) -> None:
    level = logging.INFO if event.mode is WakeMode.LISTENING else logging.WARNING
    _tell(event, level, "%s on channel %s: %s", event.mode.value, event.channel, _safe(event.reason))


# --- worker ------------------------------------------------------------------------------------------------------------


def _consumer_started(event: ConsumerStarted) -> None:
    text = "consumes queue %s, bound to exchange %s with %r"
    _tell(event, logging.INFO, text, event.queue, event.exchange_name, str(event.binding_key))  # which may be of an enum


def _consumer_stopped(event: ConsumerStopped) -> None:
    _tell(event, logging.DEBUG, "queue %s of exchange %s no longer consumed", event.queue, event.exchange_name)


def _received(event: Received) -> None:
    if _log.isEnabledFor(logging.DEBUG):
        _tell(event, logging.DEBUG, "received %s, attempt %d", _delivery(event), event.attempt)


def _processed(event: Processed) -> None:
    level = _level_of(event)
    if not _log.isEnabledFor(level):
        return
    match event.outcome:
        case Done():
            _tell(event, level, "processed %s in %s", _delivery(event), _seconds(event.duration))
        case Retry(delay, failure):
            text = "attempt %d at %s failed, again in %s: %s"
            _tell(event, level, text, event.attempt, _delivery(event), _seconds(delay), _safe(failure))
        case Dead(cause, failure):
            text = "attempt %d at %s made it a dead letter, %s: %s"
            _tell(event, level, text, event.attempt, _delivery(event), cause.value, _safe(failure))
        case Returned():
            _tell(event, level, "gave back %s", _delivery(event))
        case Postponed(delay):
            _tell(event, level, "postponed %s for %s", _delivery(event), _seconds(delay))
        case _:
            assert_never(event.outcome)


def _level_of(event: Processed) -> int:
    match event.outcome:
        case Done():
            return logging.INFO
        case Retry():
            return logging.WARNING
        case Dead(Cause.UNDECODABLE | Cause.CRASHED):
            return logging.ERROR
        case Dead():
            return logging.WARNING
        case Returned() | Postponed():
            return logging.DEBUG
        case _:
            assert_never(event.outcome)


def _duplicate(event: Duplicate) -> None:
    if _log.isEnabledFor(logging.DEBUG):
        _tell(event, logging.DEBUG, "left out %s, which was processed before", _delivery(event))


def _batch_failed(event: BatchFailed) -> None:
    text = "a batch of %d messages of queue %s failed, they are handled one by one: %s"
    _tell(event, logging.WARNING, text, len(event.messages), event.queue, _safe(event.failure))


def _circuit_opened(event: CircuitOpened) -> None:
    text = "queue %s of exchange %s pauses for %s: its handler fails with what it pauses on"
    _tell(event, logging.WARNING, text, event.queue, event.exchange_name, _seconds(event.pause))


def _circuit_closed(event: CircuitClosed) -> None:
    _tell(event, logging.INFO, "queue %s of exchange %s goes on: its handler succeeds again", event.queue, event.exchange_name)


def _settle_failed(event: SettleFailed) -> None:
    text = "the outcome of %s of queue %s was not recorded: %s"
    _tell(event, logging.WARNING, text, _one_line(event.message_id, limit=_NAME_LIMIT), event.queue, _safe(event.reason))


def _poison_isolated(event: PoisonIsolated) -> None:
    limit = _seconds(event.limit or timedelta(0))
    match event.step:
        case IsolationStep.WAITING:
            level, text = logging.WARNING, f"waits up to {limit} for the handlers that run, and no other one begins meanwhile"
        case IsolationStep.RUNNING:
            level, text = logging.WARNING, f"runs alone, for up to {limit}; other messages wait meanwhile"
        case IsolationStep.POSTPONED:
            level, text = logging.WARNING, f"waits for {limit}, because other handlers did not end in time; they go on"
        case IsolationStep.ENDED:
            level, text = logging.INFO, "runs alone no more; other messages go on"
        case _:
            assert_never(event.step)
    subject = _subject(event.message.id, event.message.routing_key)
    _tell(event, level, "poison message %s of queue %s %s", subject, event.queue, text)


def _handlers_abandoned(event: HandlersAbandoned) -> None:
    text = "%d calls of the handler %s of queue %s did not end when they were cancelled: they are left behind"
    _tell(event, logging.ERROR, text, event.count, event.handler, event.queue)


def _archived(event: Archived) -> None:
    _tell(event, logging.INFO, "archived %d dead letters of queue %s", event.count, event.queue)


def _dead_letters_measured(event: DeadLettersMeasured) -> None:
    _tell(event, logging.DEBUG, "queue %s has %d dead letters", event.queue, event.count)


# --- both --------------------------------------------------------------------------------------------------------------


def _dependency_lost(event: DependencyLost) -> None:
    what = "the %s took too long" if event.timed_out else "lost the %s"
    _tell(event, logging.WARNING, f"{what}, trying again: %s", event.dependency.value, _safe(event.reason))


def _dependency_restored(event: DependencyRestored) -> None:
    _tell(event, logging.INFO, "the %s is back", event.dependency.value)


def _paused(event: Paused) -> None:
    _tell(event, logging.INFO, "paused: %s takes nothing new", _part(event))


def _resumed(event: Resumed) -> None:
    _tell(event, logging.INFO, "resumed: %s", _part(event))


def _part(event: Paused | Resumed) -> str:
    return f"the relay to exchange {event.exchange_name}" if event.queue is None else f"queue {event.queue}"


def _health_judged(event: HealthJudged) -> None:
    _tell(event, logging.DEBUG, "health of the installation: %s, %d findings", event.status, sum(event.findings.values()))


def _history_lost(event: HistoryLost) -> None:
    _tell(event, logging.WARNING, "%d facts were not written to the history: %s", event.count, _safe(event.reason))


def _advice(event: Advice) -> None:
    _tell(event, logging.WARNING, "%s", _safe(event.text))


_TELLERS: Mapping[type, Callable[[Any], None]] = {
    Advice: _advice,
    BacklogMeasured: _backlog_measured,
    BatchFailed: _batch_failed,
    BatchSent: _batch_sent,
    CircuitClosed: _circuit_closed,
    CircuitOpened: _circuit_opened,
    CleanedUp: _cleaned_up,
    ConsumerStarted: _consumer_started,
    ConsumerStopped: _consumer_stopped,
    Archived: _archived,
    DeadLettersMeasured: _dead_letters_measured,
    DependencyLost: _dependency_lost,
    DependencyRestored: _dependency_restored,
    Duplicate: _duplicate,
    DutyDone: _duty_done,
    DutyFailed: _duty_failed,
    HandlersAbandoned: _handlers_abandoned,
    HealthJudged: _health_judged,
    HistoryLost: _history_lost,
    MaintenanceStarted: _maintenance_started,
    MaintenanceStopped: _maintenance_stopped,
    Paused: _paused,
    PoisonIsolated: _poison_isolated,
    Processed: _processed,
    Received: _received,
    RelayStarted: _relay_started,
    RelayStopped: _relay_stopped,
    Resumed: _resumed,
    RoundFinished: _round_finished,
    RouteResumed: _route_resumed,
    RouteStalled: _route_stalled,
    SendFailed: _send_failed,
    SettleFailed: _settle_failed,
    WakeModeChanged: _wake_mode_changed,
}


_NAMES = {kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower() for kind in _TELLERS}


def _tell(event: Event, level: int, text: str, *values: object, about: SentMessage | None = None) -> None:
    """Writes the line, and with it the fields that a formatter may show apart; `about` is one of the event's messages."""
    if _log.isEnabledFor(level):
        _log.log(level, text, *values, extra=_fields(event, about), stacklevel=2)


def _fields(event: Event, about: SentMessage | None) -> dict[str, object]:
    """What the event is and whom it is about. Nothing that a message carries: only names and ids."""
    message = about or getattr(event, "message", None)
    found = {name: getattr(event, name, None) for name in ("queue", "exchange_name", "routing_key", "message_id", "attempt")}
    found["tracking_ids"] = getattr(message or event, "tracking_ids", None)
    if message is not None:
        found |= {"message_id": message.id, "routing_key": message.routing_key}
    if (outcome := getattr(event, "outcome", None)) is not None:
        found["outcome"] = type(outcome).__name__.lower()
    if isinstance(ids := found["tracking_ids"], tuple) and len(ids) > _IDS_LIMIT:
        found["tracking_ids"] = (*ids[:1], *ids[1 - _IDS_LIMIT :])
    return {"event": _NAMES[type(event)]} | {name: _cut(value) for name, value in found.items() if value not in (None, ())}


def _cut(value: object) -> object:
    match value:
        case str():
            return value[:_NAME_LIMIT]
        case tuple():
            return [str(each)[:_NAME_LIMIT] for each in value]
    return value


def _delivery(event: Received | Processed | Duplicate) -> str:
    return f"{_subject(event.message.id, event.message.routing_key)} of queue {event.queue}"


def _subject(message_id: str, routing_key: str) -> str:
    return f"{_one_line(message_id, limit=_NAME_LIMIT)} {routing_key[:_NAME_LIMIT]!r}"


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3f} s"


def _safe(reason: object) -> str:
    """What others wrote, an exception's message for one: on one line, not too long, with the passwords of URLs left out."""
    return _one_line(" ".join(redacted(str(reason)).split()), limit=_TEXT_LIMIT)


def _one_line(text: str, *, limit: int) -> str:
    """`text`, cut, with line breaks and other control characters escaped: a line must not be able to look like two."""
    text = text if len(text) <= limit else f"{text[:limit]}…"
    return text if text.isprintable() else ascii(text)
