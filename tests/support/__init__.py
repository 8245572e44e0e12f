"""Helpers shared by all tests."""

from tests.support.eventually import eventually, eventually_sync
from tests.support.rabbit_admin import RabbitAdmin

__all__ = ["RabbitAdmin", "eventually", "eventually_sync"]
