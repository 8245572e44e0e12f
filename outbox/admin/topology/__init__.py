"""Where messages go: exchanges, queues, bindings and consumers, and what is wrong with them."""

from outbox.admin.topology.routes import topology

__all__ = ["topology"]
