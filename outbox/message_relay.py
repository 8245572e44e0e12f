"""The module of `MessageRelay` in the predecessor. Importing it raises an error that names the new place."""

raise ImportError("outbox.message_relay no longer exists: write `from outbox import MessageRelay`", name=__name__)
