"""Dead letters and parked messages, read in one list without being touched."""

from outbox.postgres.dead_letters.letters import (
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterStatus,
    Edition,
    Group,
    GroupBy,
    Position,
    Sort,
    Source,
)
from outbox.postgres.dead_letters.listing import DeadLetterListing

__all__ = [
    "DeadLetter",
    "DeadLetterDetail",
    "DeadLetterFilter",
    "DeadLetterListing",
    "DeadLetterStatus",
    "Edition",
    "Group",
    "GroupBy",
    "Position",
    "Sort",
    "Source",
]
