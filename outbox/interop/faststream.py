"""Messages for FastStream subscribers."""

from typing import Any, Unpack

from pydantic_core import PydanticSerializationError, to_json

from outbox.core.codec import JSON
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.errors import EncodingError

TEXT = "text/plain"


def message(routing_key: str, body: Any, **options: Unpack[PublishOptions]) -> OutboxMessage:
    """Returns a message whose body arrives at a FastStream subscriber as if FastStream had published it.

    Text is sent as text, and bytes are sent unchanged. Everything else is sent as JSON, as pydantic serialises it: models,
    dataclasses, datetimes, UUIDs, decimals; NaN and infinity as null. FastStream also takes what `Publisher.publish` sends;
    this function is for bodies that `json.dumps` cannot serialise, and for text without quotes.

    `options` are those of `Publisher.publish`. `content_type` replaces the one that follows from the body's type. Raises
    `EncodingError` for a body that cannot be serialised.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return OutboxMessage(routing_key, body, **options)
    try:
        content, content_type = (body.encode(), TEXT) if isinstance(body, str) else (to_json(body, inf_nan_mode="null"), JSON)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise EncodingError(f"the body of {routing_key!r} cannot be serialised: {error}") from error
    options.setdefault("content_type", content_type)
    return OutboxMessage(routing_key, content, **options)
