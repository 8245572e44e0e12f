"""Changing the schema while nobody else does, without making anybody wait for long."""

from datetime import timedelta

from outbox.postgres.queries import queries

OTHERS_TIMEOUT = timedelta(minutes=5)
"""Longest wait for another process that is changing the schema."""
LOCK_TIMEOUT = timedelta(seconds=10)
"""Longest wait for a lock on a table."""

_MILLISECOND = timedelta(milliseconds=1)
_BLOCKS = queries(
    "alone.sql",
    others_timeout=str(OTHERS_TIMEOUT // _MILLISECOND),
    lock_timeout=str(LOCK_TIMEOUT // _MILLISECOND),
    lock_key=str(int.from_bytes(b"outbox", "big")),
)

BEGIN_ALONE = _BLOCKS["begin"]
IN_TRANSACTION = _BLOCKS["in_transaction"]
WAIT_FOR_OTHERS = (_BLOCKS["wait_for_others"], _BLOCKS["lock"], _BLOCKS["do_not_wait_long"])
END_ALONE = _BLOCKS["end"]


def alone(statements: tuple[str, ...]) -> tuple[str, ...]:
    """`statements`, to be executed in a transaction, with all that is needed around them."""
    return (BEGIN_ALONE, *WAIT_FOR_OTHERS, *statements, END_ALONE)
