"""PostgreSQL instead of a broker: queues, subscriptions and dead letters in tables beside the outbox."""
