"""Which deliveries ended without anybody's death, although the broker counts them as if somebody had died."""

from collections.abc import Hashable

_MOST = 10_000


class Survivals:
    """Remembers, for this process, how often each message was let go of by a worker that lived on.

    Quorum queues count in `x-delivery-count` how often a message came back. Before RabbitMQ 4.3 that includes what was given
    back in good order, and on every version what a lost connection gave back. What this process knows of is not counted
    against a message; what other processes gave back is: such a message is at worst run alone once more than necessary.
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def note(self, key: Hashable) -> None:
        """It was let go of once more."""
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > _MOST:
            del self._counts[next(iter(self._counts))]

    def of(self, key: Hashable) -> int:
        """How often it was."""
        return self._counts.get(key, 0)
