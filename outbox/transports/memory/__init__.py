"""A broker in memory: what tests and single-process programs use instead of RabbitMQ, with the same behaviour."""

from outbox.transports.memory.broker import MemoryBroker
from outbox.transports.memory.queues import DeadLetter, IncomingMessage

__all__ = ["DeadLetter", "IncomingMessage", "MemoryBroker"]
