"""Limits that arguments and policies put on queues, and what happens to messages that exceed them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from outbox.core.findings import Finding, error, warning

_CHECK = "topology"
_LENGTHS = ("max-length", "max-length-bytes")
_LOWER_OF_BOTH = ("message-ttl", "expires", *_LENGTHS)
_DELIVERIES = "delivery-limit"
_OVERFLOW = "overflow"
_REJECTING = "reject-publish"
_ADVICE = "remove the limit: an argument by declaring the queue again, a policy with `rabbitmqctl clear_policy`"
_ADVICE_ON_DELIVERIES = (
    "give the queue a policy of higher priority without a delivery-limit; from RabbitMQ 4.0 on, with delivery-limit -1"
)


def settings_in_force(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Combines the arguments and the policy of a queue, as the management API shows them, like the broker; names without `x-`.

    Includes the default delivery limit that quorum queues have from RabbitMQ 4.0 on. A negative limit is none.
    """
    # The broker uses the lower one of two limits, the policy's `overflow`, and the argument for everything else.
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


def check_dead_letter_queue(queue: str, in_force: Mapping[str, Any]) -> list[Finding]:
    """Returns errors for settings of a dead letter queue, see `settings_in_force`, that lose dead letters."""
    found = [
        error(_CHECK, f"the queue {queue!r} has {name} = {in_force[name]}: dead letters vanish from it", _ADVICE)
        for name in _LOWER_OF_BOTH
        if name in in_force
    ]
    if (limit := _delivery_limit(in_force)) is not None:
        text = f"the queue {queue!r} has {_DELIVERIES} = {limit}: a dead letter that is returned more often vanishes"
        found.append(error(_CHECK, text, _ADVICE_ON_DELIVERIES))
    return found


def check_delay_queue(queue: str, in_force: Mapping[str, Any]) -> list[Finding]:
    """Returns errors for settings of a delay queue that lose retries."""
    # Other limits only make retries early: a message that exceeds them goes back to its queue at once.
    expires = _check_expires(queue, in_force, "it has no consumers, so the broker deletes it with the retries in it")
    return [
        *expires,
        *_check_dead_letter_strategy(error, queue, in_force, "retries can be lost on the way back to their queue"),
    ]


def check_consumer_queue(queue: str, in_force: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields findings for settings of a consumer's queue: errors where messages vanish, else warnings."""
    yield from _check_expires(queue, in_force, "the broker deletes it with its messages if it has no consumer for so long")
    dead_lettered = "dead-letter-exchange" in in_force
    say, outcome = (
        (warning, "becomes a dead letter unhandled")
        if dead_lettered
        else (error, "vanishes, since the queue has no dead letter exchange")
    )
    if "message-ttl" in in_force:
        ttl = in_force["message-ttl"]
        yield say(
            _CHECK, f"the queue {queue!r} has message-ttl = {ttl}: a message that waits longer (in ms) {outcome}", _ADVICE
        )
    yield from _check_dead_letter_strategy(
        warning, queue, in_force, "messages that the broker dead-letters by itself can be lost"
    )
    if in_force.get(_OVERFLOW) != _REJECTING:
        for name in _LENGTHS:
            if name in in_force:
                text = f"the queue {queue!r} has {name} = {in_force[name]}: the oldest message of a full queue {outcome}"
                yield say(
                    _CHECK,
                    text,
                    f"{_ADVICE}; or set overflow to reject-publish, so that messages without room stay in the outbox",
                )
    if (limit := _delivery_limit(in_force)) is not None:
        text = f"the queue {queue!r} has {_DELIVERIES} = {limit}: a message that is returned more often {outcome}"
        yield say(_CHECK, text, _ADVICE_ON_DELIVERIES)


def _check_expires(queue: str, in_force: Mapping[str, Any], consequence: str) -> Iterator[Finding]:
    if "expires" in in_force:
        yield error(_CHECK, f"the queue {queue!r} has expires = {in_force['expires']}: {consequence}", _ADVICE)


def _check_dead_letter_strategy(
    say: Callable[..., Finding], queue: str, in_force: Mapping[str, Any], consequence: str
) -> Iterator[Finding]:
    # A quorum queue with another `overflow` than reject-publish silently falls back to dead-lettering at most once.
    if in_force.get("dead-letter-strategy") == "at-least-once" and in_force.get(_OVERFLOW) != _REJECTING:
        has = f"the queue {queue!r} has overflow = {in_force.get(_OVERFLOW, 'drop-head')}"
        text = f"{has}, which turns its dead-letter-strategy at-least-once off: {consequence}"
        yield say(_CHECK, text, f"take overflow out of the policy, or set it to {_REJECTING}")


def _delivery_limit(in_force: Mapping[str, Any]) -> int | None:
    limit = in_force.get(_DELIVERIES)
    return limit if isinstance(limit, int) and limit >= 0 else None
