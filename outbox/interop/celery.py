"""Tasks for Celery workers."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from outbox.core.arguments import call_arguments
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.tracking import get_tracking_ids, new_id


def task(
    name: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    task_id: str | None = None,
    queue: str = "celery",
    **options: Unpack[PublishOptions],
) -> OutboxMessage:
    """Returns a message that makes a Celery worker run the task `name`, such as "shop.tasks.send_mail".

    `args` and `kwargs` are JSON values. `task_id` is by default a new UUID. `queue` is the routing key; bind the worker's queue
    with it. The format is Celery's message protocol 2.

    The task's `root_id` and `parent_id` are the root and the last id of the chain of the calling task, such as a handler.
    Outside of a chain `root_id` is the task's own id, and there is no `parent_id`.

    `options` are those of `Publisher.publish`. For a task that runs later, give `eta`: the relay sends the message at that
    time. `headers` are added to Celery's own, and replace those of the same name: `{"timelimit": [60, 50]}` limits the task to
    60 seconds, with a soft limit of 50, and `{"ignore_result": True}` stores no result.

    Raises `ConfigurationError` for an invalid name or arguments. Values that are not JSON raise `EncodingError` when the
    message is published.
    """
    positional, named = call_arguments(name, args, kwargs)
    id_ = task_id or new_id()
    chain = get_tracking_ids()
    headers = {"lang": "py", "task": name, "id": id_, "root_id": chain[0] if chain else id_}
    if chain:
        headers["parent_id"] = chain[-1]
    # The third item is for workflows of Celery. Workers look up each of these keys.
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    options["headers"] = {**headers, **(options.get("headers") or {})}
    return OutboxMessage(queue, [positional, named, embed], **options)
