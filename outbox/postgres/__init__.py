"""PostgreSQL: the outbox table and its store, the versioned schema, the doorbell, and the handles to publish through."""
