"""RabbitMQ 3.10 to 4.x, through aio-pika and aiormq."""

from outbox.errors import MissingExtraError

try:
    import aio_pika as _  # noqa: F401 - asked for here, so that its absence is explained once
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="RabbitMQ", extra="rabbitmq") from error

from outbox.transports.rabbitmq.broker import RabbitBroker

__all__ = ["RabbitBroker"]
