"""Messages as RabbitMQ carries them: which property or header holds which part, in both directions."""

from datetime import timedelta
from typing import Any

from pamqp.commands import Basic

from outbox.codec import EXPIRES_AT, ORDERING_KEY, ROUTING_KEY, TRACKING_IDS, encode_instant, encode_tracking_ids
from outbox.message import Message
from outbox.transports.rabbitmq.frames import Publication, encode_properties

PERSISTENT = 2
DEFAULT_EXCHANGE = ""

_LONGEST_EXPIRATION = timedelta(milliseconds=2**32 - 1)


def publication_of(message: Message, *, exchange: str, queue_exchange: str = DEFAULT_EXCHANGE) -> Publication:
    """The first sending of `message`: to `exchange`, or by `queue_exchange` straight to its target queue.

    Raises `UnsendableError` for what AMQP cannot carry.
    """
    headers: dict[str, Any] = {**message.headers, TRACKING_IDS: encode_tracking_ids(message.tracking_ids)}
    if message.ordering_key is not None:
        headers[ORDERING_KEY] = message.ordering_key
    if message.expires_at is not None:
        headers[EXPIRES_AT] = encode_instant(message.expires_at)
    routing_key = message.routing_key
    if message.target_queue is not None:
        headers[ROUTING_KEY] = routing_key
        exchange, routing_key = queue_exchange, message.target_queue
    properties = Basic.Properties(
        content_type=message.content_type,
        headers=headers,
        delivery_mode=PERSISTENT,
        expiration=None if message.expiration is None else encode_expiration(message.expiration),
        message_id=message.id,
        timestamp=message.created_at,
    )
    return Publication(exchange, routing_key, message.id, encode_properties(properties), message.body)


def encode_expiration(expiration: timedelta) -> str | None:
    """Milliseconds as text; None above the 49 days that the broker can count, where `x-outbox-expires-at` alone holds."""
    if expiration > _LONGEST_EXPIRATION:
        return None
    return str(max(0, expiration // timedelta(milliseconds=1)))
