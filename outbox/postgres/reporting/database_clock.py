"""The time of day, as the database has it."""

import time
from datetime import UTC, datetime


class DatabaseClock:
    """The database's time of day, as of the last time that it was asked."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def seconds(self) -> float:
        """What it says now, or nearly, in seconds since 1970."""
        return time.time() + self._ahead

    def now(self) -> datetime:
        """The same as a moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def is_now(self, seconds: float) -> None:
        """It just said this."""
        self._ahead = seconds - time.time()
