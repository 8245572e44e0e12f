"""What Outbox costs and carries, measured through its public API on real servers: `make bench`."""
