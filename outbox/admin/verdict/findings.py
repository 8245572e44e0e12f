"""Judges an installation: derives findings with severity, hint and start time from observations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from outbox.admin.admin import HealthThresholds
from outbox.admin.backlog import Backlog
from outbox.admin.backlog_reader import ZERO, Count, MessageState, Relation
from outbox.admin.brokers import BrokerKind
from outbox.admin.topology import TopologyProblem, WarningCode
from outbox.core.destinations import DEFAULT
from outbox.core.findings import Severity
from outbox.postgres.relays import AGREE, disagreement
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent
from outbox.reporting.pauses import Pause

FindingCode = Literal[
    "database_unreachable",
    "broker_unreachable",
    "outbox_late",
    "clock_behind",
    "destination_unserved",
    "messages_parked",
    "messages_held",
    "messages_stalled",
    "queue_late",
    "queue_deep",
    "paused",
    "no_relay",
    "no_worker",
    "no_maintenance",
    "no_archiver",
    "component_late",
    "component_lost",
    "component_waiting",
    "consumer_failing",
    "history_lost",
    "dead_letters",
    WarningCode,
]
CODES: tuple[str, ...] = get_args(FindingCode)
"""Every code, in the order in which findings of the same severity are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """A problem that needs attention. `code` is stable across releases. `since` None: unknown.

    `subject` is the name of the affected queue or component, of the kind `subject_kind`; empty if all of that kind are.
    """

    code: FindingCode
    severity: Severity
    summary: str
    hint: str
    since: datetime | None = None
    subject_kind: str = "outbox"
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All findings, most severe first. Without findings the status is OK."""

    findings: tuple[HealthFinding, ...] = ()

    @property
    def status(self) -> Severity:
        """The worst severity."""
        return self.findings[0].severity if self.findings else Severity.OK

    @property
    def since(self) -> datetime | None:
        """When the earliest finding of the severity `status` began; None if there is none, or its start is unknown."""
        return min((each.since for each in self.findings if each.severity is self.status and each.since), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQueue:
    """A consumer's queue. `oldest_seconds`: how long its first message has waited, at least; None: unknown, or no message."""

    name: str
    queued: Count
    oldest_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLetters:
    """Counts of dead letters.

    `fresh` are the open ones within `dead_letter_window`. `open_since` and `fresh_since` are the times of the first failure of
    each. `unarchived` are still at the broker.
    """

    open: Count = ZERO
    fresh: Count = ZERO
    open_since: datetime | None = None
    fresh_since: datetime | None = None
    unarchived: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All inputs of a verdict, observed at the time `at`."""

    at: datetime
    broker: BrokerKind
    backlog: Backlog
    queues: Sequence[ObservedQueue] = ()
    topology: Sequence[TopologyProblem] = ()
    components: Sequence[KnownComponent] = ()
    pauses: Sequence[Pause] = ()
    letters: ObservedLetters = field(default_factory=ObservedLetters)


def judge(observed: Observations, thresholds: HealthThresholds) -> Verdict:
    """Returns the verdict on observations. It depends on nothing else, so all clients get the same verdict."""
    return _ordered(
        [
            *_servers(observed, thresholds),
            *_outbox(observed, thresholds),
            *_queues(observed, thresholds),
            *_paused(observed),
            *_missing_components(observed),
            *_failing_components(observed, thresholds),
            *_letters(observed),
            *_topology(observed),
        ]
    )


def database_unreachable(reason: str, *, lacks_schema: bool = False, is_slow: bool = False) -> Verdict:
    """Returns the verdict if nothing can be observed.

    The cause: with `lacks_schema`, something is missing in the database; with `is_slow`, a statement exceeded its time limit.
    """
    what, action = "the database does not respond", "check that PostgreSQL runs and accepts connections"
    if lacks_schema:
        what = "the database lacks what this release uses"
        action = "run `outbox migrate` if a table or a column is missing, and grant this role a privilege that is missing"
    elif is_slow:
        what = "the database took too long"
        action = "look for locks and long transactions in `pg_stat_activity`"
    hint = f"{action}; until then, the rest of the status is unknown"
    return _ordered(
        [
            HealthFinding(
                code="database_unreachable",
                severity=Severity.ERROR,
                summary=f"{what}: {reason}",
                hint=hint,
                subject_kind="database",
            )
        ]
    )


def _ordered(findings: Iterable[HealthFinding]) -> Verdict:
    def rank(each: HealthFinding) -> tuple[bool, int, str]:
        return each.severity is not Severity.ERROR, CODES.index(each.code), each.subject

    return Verdict(findings=tuple(sorted(findings, key=rank)))


def _servers(observed: Observations, thresholds: HealthThresholds) -> Iterator[HealthFinding]:
    backlog = observed.backlog
    if backlog.stale:
        yield HealthFinding(
            code="database_unreachable",
            severity=Severity.ERROR,
            summary="the database does not respond: the figures of the outbox are the last ones that were read",
            hint="check that PostgreSQL runs and accepts connections",
            since=backlog.as_of,
            subject_kind="database",
        )
    problem = "no response yet" if backlog.queues is None else backlog.queues.problem
    if problem:
        yield HealthFinding(
            code="broker_unreachable",
            severity=Severity.ERROR,
            summary=f"the broker does not respond: {problem}",
            hint="check that RabbitMQ runs, and that its URL and password are correct; the depth of its queues is unknown",
            subject_kind="broker",
        )
    times = (backlog.figures.ahead_seconds, *(queue.ahead_seconds for queue in backlog.figures.deliveries))
    ahead = max(seconds or 0.0 for seconds in times)
    if grade := _grade(ahead, thresholds):
        yield HealthFinding(
            code="clock_behind",
            severity=grade,
            summary=f"the database's clock was set back: messages wait that were created up to {_span(ahead)} ahead of it",
            hint="correct the clock, or make them due now: `outbox messages send-now`, `outbox deliveries retry`",
            subject_kind="database",
        )


def _outbox(observed: Observations, thresholds: HealthThresholds) -> Iterator[HealthFinding]:
    figures = observed.backlog.figures
    states = figures.counts.states
    if grade := _grade(figures.oldest_seconds, thresholds):
        yield HealthFinding(
            code="outbox_late",
            severity=grade,
            summary=f"the oldest pending message has waited for {_span(figures.oldest_seconds)}",
            hint="check that a relay runs and keeps up, and look at its last error",
            since=_ago(observed, figures.oldest_seconds),
        )
    for each in figures.destinations:
        problem = disagreement(each.relays or ())
        # That of the default destination comes with the topology.
        if problem is not None and each.name != DEFAULT:
            yield HealthFinding(
                code="relays_disagree",
                severity=Severity.ERROR,
                summary=f"destination {each.name!r}: {problem}",
                hint=AGREE,
                subject_kind="destination",
                subject=each.name,
            )
        if each.served:
            continue
        effect = _wait(Count(each.unsent)) if each.unsent else "nothing waits yet"
        yield HealthFinding(
            code="destination_unserved",
            severity=Severity.ERROR if each.unsent else Severity.WARNING,
            summary=f"no relay serves the destination {each.name!r}: {effect}",
            hint=f"start one: `outbox relay --destination {each.name}` with the URL of its broker",
            since=_ago(observed, each.oldest_seconds),
            subject_kind="destination",
            subject=each.name,
        )
    if (parked := states[MessageState.PARKED]).value:
        yield HealthFinding(
            code="messages_parked",
            severity=Severity.ERROR,
            summary=f"{_are(parked)} parked: publishing failed for good",
            hint="look at their errors, then requeue or discard them",
            since=_ago(observed, figures.waited.get(MessageState.PARKED)),
        )
    waits: tuple[tuple[FindingCode, MessageState, str, str], ...] = (
        ("messages_held", MessageState.HELD, "no queue is bound", "start their consumer, or bind a queue for them"),
        (
            "messages_stalled",
            MessageState.STALLED,
            "a queue is full, or does not confirm messages",
            "find the queue, then let it drain or raise its limit",
        ),
    )
    for code, state, why, hint in waits:
        if (count := states[state]).value:
            waited = figures.waited.get(state)
            overdue = _grade(waited, thresholds) is Severity.ERROR
            yield HealthFinding(
                code=code,
                severity=Severity.ERROR if overdue else Severity.WARNING,
                summary=f"{_are(count)} {state.value}: {why}",
                hint=hint,
                since=_ago(observed, waited),
            )


def _queues(observed: Observations, thresholds: HealthThresholds) -> Iterator[HealthFinding]:
    for queue in observed.queues:
        if grade := _grade(queue.oldest_seconds, thresholds):
            yield HealthFinding(
                code="queue_late",
                severity=grade,
                summary=f"in the queue {queue.name!r} {_wait(queue.queued)}, the oldest for {_span(queue.oldest_seconds)}",
                hint="check that its worker runs, is not paused, and keeps up",
                since=_ago(observed, queue.oldest_seconds),
                subject_kind="queue",
                subject=queue.name,
            )
        if queue.queued.value > thresholds.queue_depth:
            yield HealthFinding(
                code="queue_deep",
                severity=Severity.WARNING,
                summary=f"in the queue {queue.name!r} {_wait(queue.queued)}, more than {thresholds.queue_depth:,}",
                hint="add workers, or find out why its handler is slow",
                subject_kind="queue",
                subject=queue.name,
            )


def _paused(observed: Observations) -> Iterator[HealthFinding]:
    waiting = {queue.name: queue.queued for queue in observed.queues if queue.queued.value}
    for pause in observed.pauses:
        scope = pause.scope.value
        subject = f"the {scope} {pause.name!r} is" if pause.name else f"all {scope}s are"
        by = f" by {pause.requested_by}" if pause.requested_by else ""
        reason = f": {pause.reason}" if pause.reason else ""
        count = waiting.get(pause.name) if scope == "queue" else None
        yield HealthFinding(
            code="paused",
            severity=Severity.WARNING,
            summary=f"{subject} paused{by}{reason}{f'; {_wait(count)} in it' if count else ''}",
            hint="resume it when the reason no longer applies",
            since=pause.requested_at,
            subject_kind=scope,
            subject=pause.name,
        )


_MISSING: Mapping[ComponentKind, tuple[FindingCode, Severity, str, str]] = {
    ComponentKind.RELAY: ("no_relay", Severity.ERROR, "no message is sent", "start one: `outbox relay`"),
    ComponentKind.WORKER: ("no_worker", Severity.ERROR, "no message is handled", "start one: `outbox worker`"),
    ComponentKind.MAINTENANCE: (
        "no_maintenance",
        Severity.WARNING,
        "operations do not progress, and nothing is cleaned up",
        "start it: `outbox maintain`",
    ),
    ComponentKind.ARCHIVER: (
        "no_archiver",
        Severity.WARNING,
        "dead letters stay at the broker, where the dashboard does not see them",
        "start one: `outbox archiver`",
    ),
}


def _missing_components(observed: Observations) -> Iterator[HealthFinding]:
    for kind, (code, severity, consequence, hint) in _MISSING.items():
        known = [one for one in observed.components if one.kind is kind]
        if any(_is_running(one) for one in known):
            continue
        never_reported = not known
        # A service without consumers needs no worker, and an archiver only if consumers of RabbitMQ queues exist.
        if kind is ComponentKind.WORKER and never_reported:
            continue
        consumes = any(one.kind is ComponentKind.WORKER and one.consumers for one in observed.components)
        if kind is ComponentKind.ARCHIVER and (observed.broker is not BrokerKind.RABBITMQ or not consumes):
            continue
        name = kind.value
        effect, unarchived = consequence, observed.letters.unarchived
        if kind is ComponentKind.ARCHIVER and unarchived:
            effect = (
                f"{unarchived:,} dead letter{' stays' if unarchived == 1 else 's stay'} at the broker, not in the dashboard"
            )
        yield HealthFinding(
            code=code,
            severity=Severity.WARNING if never_reported else severity,
            summary=f"no {name} has ever reported: none runs, or reporting is disabled"
            if never_reported
            else f"no {name} is alive: {effect}",
            hint=hint,
            since=max((one.stopped_at or one.seen_at for one in known), default=None),
            subject_kind=name,
        )


def _is_running(component: KnownComponent) -> bool:
    return component.condition in (ComponentStatus.ALIVE, ComponentStatus.LATE)


def _failing_components(observed: Observations, thresholds: HealthThresholds) -> Iterator[HealthFinding]:
    for one in observed.components:
        name = f"the {one.kind.value} {one.name!r}"
        # A component of the same kind that started later has taken over, as after a rolling deployment.
        is_replaced = any(
            each.kind is one.kind and _is_running(each) and each.started_at > one.seen_at for each in observed.components
        )
        about: dict[str, Any] = {"subject_kind": one.kind.value, "subject": one.name}
        if one.condition is ComponentStatus.LATE:
            yield HealthFinding(
                code="component_late",
                severity=Severity.WARNING,
                summary=f"{name} is late: its heartbeat is missing",
                hint="check that its process runs and reaches the database",
                since=one.seen_at,
                **about,
            )
        elif one.condition is ComponentStatus.LOST and not is_replaced and observed.at - one.seen_at < thresholds.lost_for:
            yield HealthFinding(
                code="component_lost",
                severity=Severity.WARNING,
                summary=f"{name} was lost: it crashed, or cannot reach the database",
                hint="find out why its process ended, and start another one",
                since=one.seen_at,
                **about,
            )
        if not _is_running(one):
            continue
        at, lost, is_new = observed.at, one.activity.get("history_lost_count"), False
        with suppress(TypeError, ValueError):  # a heartbeat may come from another release
            at = datetime.fromisoformat(one.activity.get("history_lost_at", ""))
            is_new = observed.at - at < thresholds.dead_letter_window
        if is_new and isinstance(lost, int):
            yield HealthFinding(
                code="history_lost",
                severity=Severity.WARNING,
                summary=f"{name} could not write {lost:,} entries of the history: chains, statistics and searches "
                "do not contain them",
                hint="look for the reason in its log; the messages themselves are not affected",
                since=at,
                **about,
            )
        waits_for, failing = one.activity.get("waiting_for"), one.activity.get("failing_queues")
        if isinstance(waits_for, Mapping) and waits_for:
            yield HealthFinding(
                code="component_waiting",
                severity=Severity.WARNING,
                summary=f"{name} waits for the {' and the '.join(sorted(map(str, waits_for)))}",
                hint="look at its log; it continues automatically as soon as it gets a response",
                **about,
            )
        for queue in failing if isinstance(failing, Sequence) and not isinstance(failing, str) else ():
            yield HealthFinding(
                code="consumer_failing",
                severity=Severity.WARNING,
                summary=f"{name} has paused the consumer of the queue {queue!r}: its handler raises an error of `pause_on`",
                hint="look at the handler's last error; the worker retries periodically",
                subject_kind="queue",
                subject=str(queue),
            )


def _letters(observed: Observations) -> Iterator[HealthFinding]:
    letters = observed.letters
    if not letters.open.value:
        return
    fresh = letters.fresh.value > 0
    one = letters.open.value == 1
    new = f"{'all' if letters.fresh == letters.open else _number(letters.fresh)} of them new"
    yield HealthFinding(
        code="dead_letters",
        severity=Severity.ERROR if fresh else Severity.WARNING,
        summary=f"{_number(letters.open)} dead letter{' is' if one else 's are'} open"
        + (f", {'and new' if one else new}" if fresh else ""),
        hint="look at their errors, then requeue or discard them",
        since=letters.fresh_since if fresh else letters.open_since,
    )


def _topology(observed: Observations) -> Iterator[HealthFinding]:
    held = observed.backlog.figures.counts.states[MessageState.HELD].value
    for each in observed.topology:
        code = each.code
        # `messages_held` reports the same problem, with its count and start time.
        if code == "unroutable" and held:
            continue
        kind, _, name = (each.node or "").partition(":")
        # The last heartbeat, or the end, of the last worker that consumed the queue.
        unconsumed_since = max(
            (
                one.stopped_at or one.seen_at
                for one in observed.components
                if any(consumer.get("queue") == name for consumer in one.consumers)
            ),
            default=None,
        )
        yield HealthFinding(
            code=code,
            severity=each.finding.severity,
            summary=each.finding.summary,
            hint=each.finding.advice,
            since=unconsumed_since if code.endswith("_without_consumer") else None,
            subject_kind=kind or "outbox",
            subject=name,
        )


def _grade(seconds: float | None, thresholds: HealthThresholds) -> Severity | None:
    if seconds is None or seconds < thresholds.late_after.total_seconds():
        return None
    return Severity.ERROR if seconds >= thresholds.overdue_after.total_seconds() else Severity.WARNING


def _ago(observed: Observations, seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else observed.at - timedelta(seconds=seconds)
    except OverflowError:  # producers in any language write to the tables: it may have been due before the year 1
        return None


def _number(count: Count) -> str:
    return {Relation.EXACT: "", Relation.ABOUT: "about ", Relation.AT_LEAST: "at least "}[count.relation] + f"{count.value:,}"


def _are(count: Count) -> str:
    return f"{_number(count)} message{' is' if count.value == 1 else 's are'}"


def _wait(count: Count) -> str:
    return f"{_number(count)} message{' waits' if count.value == 1 else 's wait'}"


def _span(seconds: float | None) -> str:
    """`47 s`, `12 min` or `3.5 h`."""
    seconds = seconds or 0.0
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
