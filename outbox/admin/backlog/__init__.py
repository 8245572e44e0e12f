"""How much waits, where, and for how much longer."""

from outbox.admin.backlog.routes import backlog
from outbox.admin.backlog.view import BacklogView

__all__ = ["BacklogView", "backlog"]
