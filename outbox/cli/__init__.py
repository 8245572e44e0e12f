"""The command `outbox`: relay, worker, migrate, demo. Every option can be given as an environment variable."""

from outbox.cli.command import main

__all__ = ["main"]
