"""Where the predecessor had `MessageRelay`: importing it says where that is now."""

raise ImportError("outbox.message_relay was the predecessor's: write `from outbox import MessageRelay`", name=__name__)
