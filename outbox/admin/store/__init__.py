"""What only the admin keeps in PostgreSQL: sessions, confirmations, idempotency keys; its lists of messages and the backlog."""
