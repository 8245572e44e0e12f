"""Limits of the bytes that a process holds at once: for batches, and for single messages."""

from dataclasses import dataclass

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""Default of `max_batch_bytes`."""
MAX_BODY_BYTES = 128 * 1024 * 1024
"""Default of `max_body_bytes`."""


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """`batch` limits the messages claimed together, unless a single one is larger. `body` limits a single message.

    A message above `body` is never fetched: the database compares its length, and the message fails with an error.
    """

    batch: int = MAX_BATCH_BYTES
    body: int = MAX_BODY_BYTES
