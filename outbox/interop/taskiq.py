"""Tasks for taskiq workers."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from outbox.core.arguments import call_arguments
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.tracking import new_id


def task(
    name: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    task_id: str | None = None,
    queue: str = "taskiq",
    labels: Mapping[str, Any] | None = None,
    **options: Unpack[PublishOptions],
) -> OutboxMessage:
    """Returns a message that makes a taskiq worker run the task `name`, such as "shop.tasks:send_mail".

    `args`, `kwargs` and `labels` are JSON values. taskiq converts arguments to the types that the task is annotated with.
    `task_id` is by default a new UUID. `queue` is the routing key; bind the worker's queue with it. `labels` are for the
    worker, such as `{"timeout": 60}` in seconds; a task's own labels are set by its sender in taskiq, so give them here, too.
    The format is that of taskiq's JSON formatter.

    `options` are those of `Publisher.publish`. For a task that runs later, give `eta`: the relay sends the message at that
    time.

    Raises `ConfigurationError` for an invalid name or arguments. Values that are not JSON raise `EncodingError` when the
    message is published.
    """
    positional, named = call_arguments(name, args, kwargs)
    body = {
        "task_id": task_id or new_id(),
        "task_name": name,
        "labels": dict(labels or {}),
        "labels_types": None,
        "args": positional,
        "kwargs": named,
    }
    return OutboxMessage(queue, body, **options)
