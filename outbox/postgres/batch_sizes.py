"""How large the next batch of a statement is: smaller after one that took too long, then larger again."""

from datetime import timedelta

SHRINK_BY = 4
"""So that few timeouts lie between a full batch and a single row."""
GROW_BY = 2
ALONE_TIMEOUT = timedelta(minutes=10)
"""How long a statement about a single row may take: 128 MiB at 0.2 MiB/s."""


class BatchSizes:
    """Rows and bytes of the next batch, at most `max_bytes`. Without timeouts they are what the caller asks for."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._divisor = 1

    @property
    def max_bytes(self) -> int:
        """Of the next batch; a single row may be larger."""
        return max(self._max_bytes // self._divisor, 1)

    def rows(self, limit: int) -> int:
        """Of the next batch, of which `limit` are wanted."""
        return max(limit // self._divisor, 1)

    def timeout(self, rows: int, usual: timedelta) -> timedelta:
        """How long a batch of so many rows may take. What cannot be divided further gets more time instead."""
        return max(usual, ALONE_TIMEOUT) if rows == 1 and self.alone else usual

    @property
    def alone(self) -> bool:
        """Whether a single row, if that is the next batch, has more time than usual."""
        return self._divisor > 1

    def too_slow(self, rows: int) -> None:
        """A batch of so many rows was not done in time. A single row says nothing about smaller batches."""
        if rows > 1 or self._divisor == 1:
            self._divisor *= SHRINK_BY

    def in_time(self) -> None:
        """A batch was done in time."""
        self._divisor = max(self._divisor // GROW_BY, 1)
