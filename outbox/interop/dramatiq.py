"""Messages for Dramatiq workers."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from outbox.core.arguments import call_arguments
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.tracking import new_id


def message(
    actor: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    message_id: str | None = None,
    queue: str = "default",
    actor_options: Mapping[str, Any] | None = None,
    **options: Unpack[PublishOptions],
) -> OutboxMessage:
    """Returns a message that makes a Dramatiq worker run the actor with the name `actor`.

    `args` and `kwargs` are JSON values. `message_id` is by default a new UUID. `queue` is the queue that the actor was declared
    with. It is also the routing key; bind the worker's queue with it. `actor_options` are what `send_with_options` takes, such
    as `{"max_retries": 3, "time_limit": 60_000}`, with times in milliseconds.

    `options` are those of `Publisher.publish`. For a message that is handled later, give `eta`: the relay sends it at that
    time.

    Raises `ConfigurationError` for an invalid name or arguments. Values that are not JSON raise `EncodingError` when the
    message is published.
    """
    positional, named = call_arguments(actor, args, kwargs)
    body = {
        "queue_name": queue,
        "actor_name": actor,
        "args": positional,
        "kwargs": named,
        "options": dict(actor_options or {}),
        "message_id": message_id or new_id(),
        "message_timestamp": time.time_ns() // 1_000_000,
    }
    return OutboxMessage(queue, body, **options)
