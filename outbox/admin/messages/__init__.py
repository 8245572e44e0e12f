"""What is in the outbox: pages of messages by state, and where one of them is, and why."""

from outbox.admin.messages.routes import messages

__all__ = ["messages"]
