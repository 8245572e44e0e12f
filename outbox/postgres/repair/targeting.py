"""Which dead letters an action means: ids as they are given, or what fits a filter now, the oldest first."""

from collections.abc import Sequence
from dataclasses import replace

from outbox.postgres.dead_letters import DeadLetterFilter, DeadLetterStatus
from outbox.postgres.dead_letters.selecting import Arguments, Letters, dead_ids, parked_ids
from outbox.postgres.names import TableName
from outbox.postgres.repair.values import Action

_GIVEN = """
select letter, (letter like 'outbox-%')::integer as kind,
    coalesce(substring(letter from '[0-9]{{1,18}}')::bigint, 0) as number,
    null::integer as version, null::text as status, null::timestamptz as failed_at
from unnest({ids}::text[]) as given (letter)"""
_NONE = """
select null::text as letter, 0 as kind, 0::bigint as number, null::text as queue, null::text as exception_type,
    null::text as ordering_key, null::timestamptz as created_at, null::integer as version, null::text as status,
    null::timestamptz as failed_at
where false"""


class Selecting:
    """Puts together what selects dead letters of one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    def oldest(self, selector: Sequence[str] | DeadLetterFilter, limit: int | None, arguments: Arguments) -> str:
        """Rows with `letter`, `kind` and `number`; what is given by its id is among them even if there is no such letter."""
        if isinstance(selector, DeadLetterFilter):
            return self.lines(selector, limit, arguments)
        return _limited(_GIVEN.format(ids=arguments.add(list(selector))), limit, arguments)

    def lines(self, selector: DeadLetterFilter, limit: int | None, arguments: Arguments) -> str:
        """The lines of the list that fit, those that came to be first in front."""
        branches = [f"({branch.where()})" for branch in self._letters.branches(selector, arguments)]
        return _limited("\nunion all\n".join(branches) or _NONE, limit, arguments)


def sensible(selector: DeadLetterFilter, action: Action, *, force: bool) -> DeadLetterFilter:
    """`selector`, of what `action` can be done to if it does not say of what status."""
    if selector.status is not None or (action is Action.PURGE and force):
        return selector
    return replace(
        selector, status=DeadLetterStatus.OPEN if action in (Action.REQUEUE, Action.DISCARD) else DeadLetterStatus.DISCARDED
    )


def oldest_ids(ids: Sequence[str], limit: int | None) -> Sequence[str]:
    """Those of `ids` that an operation would come to first, as many as `limit`, in the order given; None: all."""
    if limit is None or len(ids) <= limit:
        return ids
    kept = set(sorted(ids, key=_turn)[:limit])
    return [id_ for id_ in ids if id_ in kept]


def _turn(id_: str) -> tuple[int, int]:
    """Where an id stands among others: dead letters in front, in their order, then parked rows; what is no id comes last."""
    for kind, numbers in enumerate((dead_ids([id_]), parked_ids([id_]))):
        for number in numbers:
            return kind, number
    return 2, 0


def _limited(selection: str, limit: int | None, arguments: Arguments) -> str:
    if limit is None:
        return selection
    return f"select *\nfrom (\n{selection}\n) as every_one\norder by kind, number\nlimit {arguments.add(limit)}"
