"""PostgreSQL as the broker: queues, subscriptions and dead letters in tables next to the outbox."""

from outbox.transports.postgres.broker import PostgresBroker

__all__ = ["PostgresBroker"]
