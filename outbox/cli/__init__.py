"""The `outbox` command line: runs the processes, creates the tables, and shows and repairs messages."""

from outbox.cli.command import main

__all__ = ["main"]
