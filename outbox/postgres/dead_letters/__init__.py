"""Dead letters and parked messages, read in one list without being touched."""

from outbox.postgres.dead_letters.letters import (
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    Edition,
    Group,
    GroupBy,
    Position,
    Sort,
    Source,
    Status,
)
from outbox.postgres.dead_letters.listing import DeadLetterListing

__all__ = [
    "DeadLetter",
    "DeadLetterDetail",
    "DeadLetterFilter",
    "DeadLetterListing",
    "Edition",
    "Group",
    "GroupBy",
    "Position",
    "Sort",
    "Source",
    "Status",
]
