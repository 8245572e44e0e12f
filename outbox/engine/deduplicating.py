"""Which messages of one call meet another with their dedup key, and which are left to insert."""

from collections.abc import Collection, Sequence

from outbox.engine.publishing import Row


def candidates(rows: Sequence[Row]) -> list[Row]:
    """`rows` without those that another of them makes superfluous, in order.

    What is left of a dedup key is the last row that replaces, or the first one if none does. Which is what publishing one
    after another would leave.
    """
    chosen: dict[str, int] = {}
    for position, row in enumerate(rows):
        key = _dedup_key(row)
        if key is not None and (key not in chosen or _replaces(row)):
            chosen[key] = position
    return [row for position, row in enumerate(rows) if chosen.get(_dedup_key(row) or "", position) == position]


def published_ids(rows: Sequence[Row], pending: Collection[str]) -> list[str | None]:
    """The id of each of `rows`, or None where it met a pending message, as publishing one after another would answer.

    `pending` are the dedup keys that were met in the table. A row that a later one of the same call replaced has its id, as
    if both had been published by calls of their own.
    """
    taken = set(pending)
    ids: list[str | None] = []
    for row in rows:
        key = _dedup_key(row)
        ids.append(None if key in taken and not _replaces(row) else row.id)
        if key is not None:
            taken.add(key)
    return ids


def _dedup_key(row: Row) -> str | None:
    return None if row.extras is None else row.extras.dedup_key


def _replaces(row: Row) -> bool:
    return row.extras is not None and row.extras.replaces
