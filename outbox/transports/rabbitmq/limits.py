"""Limits that arguments and policies put on queues, and what happens to messages above them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from outbox.core.findings import Finding, error, warning

_CHECK = "topology"
_LENGTHS = ("max-length", "max-length-bytes")
_LOWER_OF_BOTH = ("message-ttl", "expires", *_LENGTHS)
_DELIVERIES = "delivery-limit"
_OVERFLOW = "overflow"
_REJECTING = "reject-publish"
_ADVICE = "take the limit away: the argument with the queue, the policy with `rabbitmqctl clear_policy`"
_ADVICE_ON_DELIVERIES = (
    "give the queue a policy of higher priority that names no delivery-limit; from RabbitMQ 4.0 on, one with delivery-limit -1"
)


def settings_in_force(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments and policies of a queue as the management API shows it, combined as the broker does; names without `x-`.

    Of two limits the lower one counts, of two values of overflow the policy's, of anything else the argument. No delivery limit
    is a negative one, or none; what quorum queues have by default, from RabbitMQ 4.0 on, is included.
    """
    arguments = {name.removeprefix("x-"): value for name, value in (queue.get("arguments") or {}).items()}
    policy: Mapping[str, Any] = queue.get("effective_policy_definition") or {}
    combined = {**policy, **arguments, **{name: value for name, value in policy.items() if name == _OVERFLOW}}
    for name in _LOWER_OF_BOTH:
        if name in arguments and name in policy:
            combined[name] = min(arguments[name], policy[name])
    if _DELIVERIES in arguments and _DELIVERIES in policy:
        limits = arguments[_DELIVERIES], policy[_DELIVERIES]
        combined[_DELIVERIES] = max(limits) if min(limits) < 0 else min(limits)
    elif _DELIVERIES not in combined and isinstance(queue.get("delivery_limit"), int):
        combined[_DELIVERIES] = queue["delivery_limit"]
    return combined


def losing_dead_letters(queue: str, in_force: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with a dead letter queue that has these settings, see `settings_in_force`."""
    found = [
        error(_CHECK, f"the queue {queue!r} has {name} = {in_force[name]}: dead letters vanish from it", _ADVICE)
        for name in _LOWER_OF_BOTH
        if name in in_force
    ]
    if (limit := _delivery_limit(in_force)) is not None:
        text = f"the queue {queue!r} has {_DELIVERIES} = {limit}: a dead letter that comes back more often vanishes"
        found.append(error(_CHECK, text, _ADVICE_ON_DELIVERIES))
    return found


def losing_retries(queue: str, in_force: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with a delay queue that has these settings. What exceeds other limits of it is only retried early."""
    deleted = _deleted(queue, in_force, "no worker consumes from it, so the broker deletes it with the retries in it")
    return [
        *deleted,
        *_carelessly_dead_lettered(error, queue, in_force, "retries can be lost on their way back to their queue"),
    ]


def losing_messages(queue: str, in_force: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with a consumer's queue that has these settings: an error where messages vanish."""
    yield from _deleted(queue, in_force, "the broker deletes it with its messages if no worker consumes from it for so long")
    dead_lettered = "dead-letter-exchange" in in_force
    say, fate = (
        (warning, "becomes a dead letter unhandled")
        if dead_lettered
        else (error, "vanishes, since the queue has no dead letter exchange")
    )
    if "message-ttl" in in_force:
        ttl = in_force["message-ttl"]
        yield say(_CHECK, f"the queue {queue!r} has message-ttl = {ttl}: what waits for more milliseconds {fate}", _ADVICE)
    yield from _carelessly_dead_lettered(warning, queue, in_force, "what the broker dead-letters by itself can be lost")
    if in_force.get(_OVERFLOW) != _REJECTING:
        for name in _LENGTHS:
            if name in in_force:
                text = f"the queue {queue!r} has {name} = {in_force[name]}: the oldest message of a full queue {fate}"
                yield say(
                    _CHECK, text, f"{_ADVICE}; or set overflow to reject-publish, so that the outbox keeps what has no room"
                )
    if (limit := _delivery_limit(in_force)) is not None:
        text = f"the queue {queue!r} has {_DELIVERIES} = {limit}: a message that comes back more often {fate}"
        yield say(_CHECK, text, _ADVICE_ON_DELIVERIES)


def _deleted(queue: str, in_force: Mapping[str, Any], consequence: str) -> Iterator[Finding]:
    if "expires" in in_force:
        yield error(_CHECK, f"the queue {queue!r} has expires = {in_force['expires']}: {consequence}", _ADVICE)


def _carelessly_dead_lettered(
    say: Callable[..., Finding], queue: str, in_force: Mapping[str, Any], consequence: str
) -> Iterator[Finding]:
    """Quorum queues dead-letter at least once only if they refuse what they have no room for; else at most once, silently."""
    if in_force.get("dead-letter-strategy") == "at-least-once" and in_force.get(_OVERFLOW) != _REJECTING:
        has = f"the queue {queue!r} has overflow = {in_force.get(_OVERFLOW, 'drop-head')}"
        text = f"{has}, which turns its dead-letter-strategy at-least-once off: {consequence}"
        yield say(_CHECK, text, f"take overflow out of the policy, or set it to {_REJECTING}")


def _delivery_limit(in_force: Mapping[str, Any]) -> int | None:
    limit = in_force.get(_DELIVERIES)
    return limit if isinstance(limit, int) and limit >= 0 else None
