"""What is wrong with a topology, with a hint for each finding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from outbox.admin.brokers import BrokerKind
from outbox.admin.topology.seen import Seen
from outbox.core.findings import Finding, error, warning
from outbox.postgres.relays import AGREE, disagreement

WarningCode = Literal[
    "unroutable",
    "queue_without_consumer",
    "subscription_without_consumer",
    "exchange_missing",
    "queue_missing",
    "dead_letter_queue_missing",
    "retry_queue_missing",
    "dead_letters_vanish",
    "queue_limit",
    "old_binding",
    "relays_disagree",
]


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, a word for it that stays the same, and the node that it is about."""

    code: WarningCode
    node: str | None
    finding: Finding


def judged(seen: Seen) -> list[Judged]:
    """Errors first."""
    found = [*_held(seen), *_unconsumed(seen)]
    if (problem := disagreement(seen.relays)) is not None:
        found.insert(0, Judged("relays_disagree", f"exchange:{seen.exchange}", error("topology", problem, AGREE)))
    if seen.broker is BrokerKind.RABBITMQ and seen.problem is None:
        found += [*_missing(seen), *_losing(seen), *_old_bindings(seen)]
    return sorted(found, key=lambda each: each.finding.severity != "error")


def _held(seen: Seen) -> Iterator[Judged]:
    for held in seen.held:
        if held.target_queue is None:
            text = f"messages of the routing key {held.routing_key!r} are held: no queue is bound for them"
            advice = (
                f"bind a queue to the exchange {seen.exchange!r} with a key that matches {held.routing_key!r}, or start its "
                f"consumer; message {held.row_id} is the first of them"
            )
        else:
            text = f"messages for the queue {held.target_queue!r} are held: it is not there"
            advice = f"start its consumer, which declares it; message {held.row_id} is the first of them"
        yield Judged("unroutable", f"exchange:{seen.exchange}", error("topology", text, advice))


def _unconsumed(seen: Seen) -> Iterator[Judged]:
    """Queues that messages go to and nobody takes them from."""
    bound = {binding.queue for binding in seen.bindings or ()} | {consumer.queue for consumer in seen.consumers}
    code: WarningCode = "subscription_without_consumer" if seen.broker is BrokerKind.POSTGRESQL else "queue_without_consumer"
    for name in sorted(bound):
        queue = seen.queues.get(name)
        if queue is None or not queue.there or queue.consumers != 0:
            continue
        waiting = f", and {queue.waiting:,} messages wait in it" if queue.waiting else ""
        mend = (
            "start its worker; if nobody needs it any more, delete its rows of outbox_subscription"
            if seen.broker is BrokerKind.POSTGRESQL
            else "start its worker; if nobody needs it any more, unbind and delete it"
        )
        yield Judged(code, f"queue:{name}", warning("topology", f"nobody consumes the queue {name!r}{waiting}", mend))


def _missing(seen: Seen) -> Iterator[Judged]:
    for name in sorted(seen.missing_exchanges):
        mend = "start a relay or a worker, which declare it, or provision it"
        yield Judged("exchange_missing", f"exchange:{name}", error("topology", f"the exchange {name!r} is missing", mend))
    for name in [queue.name for queue in seen.queues.values() if not queue.there]:
        code: WarningCode = "queue_missing"
        what, hint = "the queue", "start its consumer, which declares it, or provision it"
        if name.startswith(f"{seen.exchange}.delay_"):
            code, what = "retry_queue_missing", "the queue for retries"
            hint += ": retries with that delay fail until then"
        elif name.endswith(".dlq"):
            code, what = "dead_letter_queue_missing", "the dead letter queue"
        yield Judged(code, f"queue:{name}", error("topology", f"{what} {name!r} is missing", hint))


def _losing(seen: Seen) -> Iterator[Judged]:
    """Of queues that are ours: the limits of others are their owners' business."""
    from outbox.transports.rabbitmq.limits import losing_dead_letters, losing_messages, losing_retries

    consumed = {consumer.queue for consumer in seen.consumers}
    for queue in seen.queues.values():
        if not queue.settings:
            continue
        code: WarningCode = "queue_limit"
        if queue.name.endswith(".dlq"):
            code, findings = "dead_letters_vanish", losing_dead_letters(queue.name, queue.settings)
        elif queue.name.startswith(f"{seen.exchange}.delay_"):
            findings = losing_retries(queue.name, queue.settings)
        elif queue.name in consumed:
            findings = losing_messages(queue.name, queue.settings)
        else:
            continue
        for finding in findings:
            yield Judged(code, f"queue:{queue.name}", finding)


def _old_bindings(seen: Seen) -> Iterable[Judged]:
    """Of queues that a worker has told of: what other queues are bound with is their owners' business."""
    from outbox.doctor.rabbitmq import old_binding

    wanted = {(consumer.queue, consumer.binding_key) for consumer in seen.consumers}
    known = {queue for queue, _ in wanted}
    return [
        Judged("old_binding", f"queue:{one.queue}", old_binding(one.queue, one.key, exchange=seen.exchange))
        for one in seen.bindings or ()
        if one.queue in known and (one.queue, one.key) not in wanted
    ]
