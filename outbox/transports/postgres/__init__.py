"""PostgreSQL instead of a broker: queues, subscriptions and dead letters in tables beside the outbox."""

from outbox.transports.postgres.broker import PostgresBroker

__all__ = ["PostgresBroker"]
