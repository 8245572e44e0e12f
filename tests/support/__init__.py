"""What tests of every part share: waiting for something to become true, and looking into the broker."""

from tests.support.eventually import eventually, eventually_sync
from tests.support.rabbit_admin import RabbitAdmin

__all__ = ["RabbitAdmin", "eventually", "eventually_sync"]
