"""Live events: a stream of server-sent events."""
