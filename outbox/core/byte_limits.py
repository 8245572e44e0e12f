"""How many bytes a process takes at once: the limits of batches and of single messages."""

from dataclasses import dataclass

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""Default of `max_batch_bytes`."""
MAX_BODY_BYTES = 128 * 1024 * 1024
"""Default of `max_body_bytes`."""


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """`batch` bounds what is claimed together, unless a single message is larger; `body` bounds a single message.

    A message above `body` is never fetched: the database judges it by its length, and it ends with an error that says so.
    """

    batch: int = MAX_BATCH_BYTES
    body: int = MAX_BODY_BYTES
