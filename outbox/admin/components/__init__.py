"""Relays, workers and the rest: whether they live, what they do, and pausing them."""

from outbox.admin.components.routes import components

__all__ = ["components"]
