"""PostgreSQL: the outbox table and its store, the schema with its versions, the doorbell, the handles to publish through."""
