"""What failed for good: read, and repaired by requeueing, discarding, restoring, purging, at once or in operations."""

from outbox.dead_letters.letters import AT_ONCE, INBOX_RETENTION, DeadLetters, Selector
from outbox.postgres.dead_letters import (
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterStatus,
    Edition,
    Group,
    GroupBy,
    Position,
    Source,
)
from outbox.postgres.repair.operations import OperationItem
from outbox.postgres.repair.running import OperationsRunner
from outbox.postgres.repair.values import (
    ORIGINAL_ROUTING,
    Action,
    Also,
    Canary,
    Destination,
    Edit,
    Expected,
    Item,
    ItemOutcome,
    Operation,
    OperationState,
    Plan,
    Repaired,
    ToQueue,
)

__all__ = [
    "AT_ONCE",
    "INBOX_RETENTION",
    "ORIGINAL_ROUTING",
    "Action",
    "Also",
    "Canary",
    "DeadLetter",
    "DeadLetterDetail",
    "DeadLetterFilter",
    "DeadLetterStatus",
    "DeadLetters",
    "Destination",
    "Edit",
    "Edition",
    "Expected",
    "Group",
    "GroupBy",
    "Item",
    "ItemOutcome",
    "Operation",
    "OperationItem",
    "OperationState",
    "OperationsRunner",
    "Plan",
    "Position",
    "Repaired",
    "Selector",
    "Source",
    "ToQueue",
]
