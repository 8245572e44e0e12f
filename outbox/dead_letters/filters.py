"""Filters as SQL conditions that the indexes can answer."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outbox.dead_letters.actions import Action
from outbox.dead_letters.model import PARKED_PREFIX, DeadLetterFilter, DeadLetterStatus, FacetField, GroupBy, Source
from outbox.postgres.queries import TableName, query
from outbox.postgres.schema.objects import SATELLITES

_FILE = "letters.sql"
_PARTS = ("failed_attempts", "parked_message_id", "parked_type", "parked_fingerprint", "parked_search")
_TABLES = ("dead_letter", "edition", "history", "operation", "operation_item", "group_mark")
_LARGEST_ID = 2**63 - 1
_SHORT, _LONG = "length(routing_key) <= 255", "least(length(routing_key), 256) = 256"
"""Which of two indexes has a letter's routing key. The planner takes an equality for rare, as long ones are."""
_UNION = "\nunion all\n"


class Letters:
    """The SQL over the dead letters and the parked rows of one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._names = {"table": table.sql} | {name: TableName(SATELLITES[name], table.schema).sql for name in _TABLES}
        self._names |= {part: _without_comment(query(_FILE, part)) for part in _PARTS}

    def sql(self, block: str) -> str:
        """One block of `sql/letters.sql`."""
        return query(_FILE, block, **self._names)

    def branches(self, filter_: DeadLetterFilter, arguments: "Arguments") -> "Sequence[Branch]":
        """What is to be read for `filter_`, of the tables that can hold any of it."""
        branches = []
        if _may_be_dead(filter_):
            branches.append(self._dead(filter_, arguments))
        is_open = filter_.status is None or DeadLetterStatus.OPEN in several(filter_.status)
        if is_open and filter_.source in (None, Source.RELAY) and (not filter_.ids or parked_ids(filter_.ids)):
            branches.append(Branch(1, self.sql("parked"), self._of_parked(filter_, arguments)))
        return branches

    def grouped(self, by: GroupBy, filter_: DeadLetterFilter, most: int, arguments: "Arguments") -> str | None:
        """What counts the letters of `filter_` by what they have in common; None if there can be none."""
        branches = self.branches(filter_, arguments)
        if not branches:
            return None
        once_requeued = self.sql("never_requeued")
        if _may_be_dead(filter_):
            once_requeued = self._dead(replace(filter_, status=None), arguments).where("(status = 'requeued' or deaths > 1)")
        selects = []
        for branch in branches:
            if by == "routing_key" and branch.kind == 0 and filter_.routing_key is None:
                # One index has the short routing keys, whole, and another has the long ones.
                selects += [branch.where(_SHORT), branch.where(_LONG)]
            else:
                selects.append(branch.where())
        return query(
            _FILE,
            "groups",
            by=by,
            letters=_UNION.join(selects),
            once_requeued=once_requeued,
            most=arguments.add(most),
        )

    def faceted(
        self, filter_: DeadLetterFilter, fields: Sequence[FacetField], limit: int, most: int, arguments: "Arguments"
    ) -> str | None:
        """What counts the values of `fields`, of the latest `most` letters; None if there can be none."""
        bound = arguments.add(most)
        latest = [
            f"({branch.where()}\norder by failed_at desc, id desc\nlimit {bound})"
            for branch in self.branches(filter_, arguments)
        ]
        if not latest:
            return None
        sets = ", ".join(f"({name})" for name in fields)
        names = {"fields": ", ".join(fields), "sets": sets, "letters": _UNION.join(latest), "most": arguments.add(limit)}
        return query(_FILE, "facets", **names)

    def _dead(self, filter_: DeadLetterFilter, arguments: "Arguments") -> "Branch":
        return Branch(0, self.sql("letters"), _of_letters(filter_, arguments))

    def _of_parked(self, filter_: DeadLetterFilter, arguments: "Arguments") -> Sequence[str]:
        add, names = arguments.add, self._names
        conditions = ["failed_at is not null", *_of_both(filter_, arguments)]
        if filter_.routing_key is not None:
            conditions.append(_equal("routing_key", filter_.routing_key, arguments))
        if filter_.ids:
            conditions.append(f"id = any({add(parked_ids(filter_.ids))}::bigint[])")
        if filter_.queue is not None:
            conditions.append(_equal("coalesce(target_queue, '')", filter_.queue, arguments))
        if filter_.exception_type is not None:
            conditions.append(_equal(names["parked_type"], filter_.exception_type, arguments))
        if filter_.group_id is not None:
            conditions.append(_equal(names["parked_fingerprint"], filter_.group_id, arguments))
        if filter_.without_groups:
            conditions.append(f"{names['parked_fingerprint']} <> all({add(filter_.without_groups)}::text[])")
        if filter_.message_id is not None:
            conditions.append(f"{names['parked_message_id']} = {add(filter_.message_id)}")
        if filter_.min_failures is not None:
            conditions.append(f"attempts >= {add(filter_.min_failures)}")
        if filter_.q is not None:
            conditions.append(f"{names['parked_search']} @@ websearch_to_tsquery('simple', {add(filter_.q)})")
        return conditions


@dataclass(frozen=True, slots=True)
class Branch:
    """One table's part of a list: a select, and the conditions on its rows. `kind` puts equals of both tables in an order."""

    kind: int
    select: str
    conditions: Sequence[str]

    def where(self, *more: str) -> str:
        """The select with its conditions."""
        conditions = [*self.conditions, *more]
        return f"{self.select}\nwhere {' and '.join(conditions)}" if conditions else self.select


@dataclass(slots=True)
class Arguments:
    """The arguments of a statement that is being put together."""

    values: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> str:
        """The placeholder of one more."""
        self.values.append(value)
        return f"${len(self.values)}"


def grouping_bits(fields: Sequence[FacetField]) -> Mapping[FacetField, int]:
    """What `grouping` says of the rows of each field: all bits but its own, the first field's the highest."""
    every = 2 ** len(fields) - 1
    return {name: every ^ (1 << (len(fields) - 1 - place)) for place, name in enumerate(fields)}


def dead_ids(ids: Sequence[str]) -> list[int]:
    """Those of `ids` that rows of the dead letters have."""
    numbers = [(text, int(text)) for text in ids if text.isascii() and text.isdecimal() and len(text) < 20]
    # Written as we write it: "017" would be answered under another name.
    return [number for text, number in numbers if text == str(number) and number <= _LARGEST_ID]


def parked_ids(ids: Sequence[str]) -> list[int]:
    """Those of `ids` that rows of the outbox table have."""
    return dead_ids([id_.removeprefix(PARKED_PREFIX) for id_ in ids if id_.startswith(PARKED_PREFIX)])


def is_letter_id(text: str) -> bool:
    """Whether operators know anything by such an id."""
    return bool(dead_ids([text]) or parked_ids([text]))


def _may_be_dead(filter_: DeadLetterFilter) -> bool:
    return not filter_.ids or bool(dead_ids(filter_.ids))


def _of_letters(filter_: DeadLetterFilter, arguments: Arguments) -> Sequence[str]:
    add = arguments.add
    conditions = _of_both(filter_, arguments)
    if filter_.ids:
        conditions.append(f"id = any({add(dead_ids(filter_.ids))}::bigint[])")
    conditions += _of_texts(filter_, arguments)
    # Written out, so that every plan knows whether the index of open ones fits.
    for column, chosen in (("source", filter_.source), ("status", filter_.status)):
        if chosen is not None:
            values = ", ".join(f"'{each.value}'" for each in several(chosen))
            conditions.append(f"{column} in ({values})" if "," in values else f"{column} = {values}")
    if filter_.group_id is not None:
        conditions.append(_equal("fingerprint", filter_.group_id, arguments))
    if filter_.without_groups:
        conditions.append(f"fingerprint <> all({add(filter_.without_groups)}::text[])")
    if filter_.min_failures is not None:
        conditions.append(f"{_FAILED_ATTEMPTS} >= {add(filter_.min_failures)}")
    if filter_.q is not None:
        conditions.append(f"search @@ websearch_to_tsquery('simple', {add(filter_.q)})")
    return conditions


def _of_texts(filter_: DeadLetterFilter, arguments: Arguments) -> Iterator[str]:
    if filter_.queue is not None:
        yield _equal("queue", filter_.queue, arguments)
    if filter_.message_id is not None:
        yield _equal("message_id", filter_.message_id, arguments)
    if filter_.routing_key is not None:
        keys = several(filter_.routing_key)
        short, long = [key for key in keys if len(key) <= 255], [key for key in keys if len(key) > 255]
        by_length = [f"{_equal('routing_key', short, arguments)} and {_SHORT}"] if short else []
        by_length += [f"{_hashed('routing_key', long, arguments)} and {_LONG}"] if long else []
        yield by_length[0] if len(by_length) == 1 else " or ".join(f"({each})" for each in by_length).join("()")
    if filter_.exception_type is not None:
        yield _hashed("exception_type", filter_.exception_type, arguments)


def several(value: Any) -> Sequence[Any]:
    """What is given once, or several times."""
    return value if isinstance(value, tuple | list) else (value,)


def _equal(column: str, value: str | Sequence[str], arguments: Arguments) -> str:
    values = several(value)
    return f"{column} = {arguments.add(values[0])}" if len(values) == 1 else f"{column} = any({arguments.add(values)}::text[])"


def _hashed(column: str, value: str | Sequence[str], arguments: Arguments) -> str:
    """Equality, in a form that an index by hash answers."""
    values = several(value)
    if len(values) == 1:
        place = arguments.add(values[0])
        return f"hashtextextended({column}, 0) = hashtextextended({place}, 0) and {column} = {place}"
    place = f"{arguments.add(values)}::text[]"
    hashes = f"array(select hashtextextended(value, 0) from unnest({place}) as given (value))"
    return f"hashtextextended({column}, 0) = any({hashes}) and {column} = any({place})"


def _of_both(filter_: DeadLetterFilter, arguments: Arguments) -> list[str]:
    add = arguments.add
    conditions = []
    if filter_.tracking_id is not None:
        conditions.append(f"tracking_ids @> {add(json.dumps([filter_.tracking_id], ensure_ascii=False))}::text::jsonb")
    if filter_.failed_after is not None:
        conditions.append(f"failed_at >= {add(filter_.failed_after)}")
    if filter_.failed_before is not None:
        conditions.append(f"failed_at < {add(filter_.failed_before)}")
    return conditions


def _without_comment(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--"))


_FAILED_ATTEMPTS = _without_comment(query(_FILE, "failed_attempts"))


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
