"""Deliveries that were found to be duplicates, between that and their settlement."""

MOST_DUPLICATES = 10_000


class Duplicates:
    """Deliveries that were found to be duplicates, until they are settled, which is told like that of any other."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, queue: str, message_id: str) -> None:
        """Takes note of one; forgets the oldest of those that were never settled."""
        self._found[queue, message_id] = None
        if len(self._found) > MOST_DUPLICATES:
            self._found.pop(next(iter(self._found)))

    def discard(self, queue: str, message_id: str) -> bool:
        """Whether it was one; it is not any more."""
        known = (queue, message_id) in self._found
        self._found.pop((queue, message_id), None)
        return known
