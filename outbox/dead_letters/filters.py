"""Translates filters into SQL conditions that the indexes support."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outbox.dead_letters.actions import Action
from outbox.dead_letters.model import PARKED_PREFIX, DeadLetterFilter, DeadLetterStatus, FacetField, GroupBy, Source
from outbox.postgres.queries import TableName, query
from outbox.postgres.schema.objects import SATELLITES, destination_table

_FILE = "dead_letter_list.sql"
_PARTS = ("failed_attempts", "parked_message_id", "parked_type", "parked_fingerprint", "parked_search")
_TABLES = ("dead_letter", "edition", "history", "operation", "operation_item", "group_mark")
_MAX_ID = 2**63 - 1
# Conditions of the two partial indexes on routing keys. The long one is an equality because the planner takes equalities to be
# selective, and long keys are rare.
_SHORT, _LONG = "length(routing_key) <= 255", "least(length(routing_key), 256) = 256"
_UNION = "\nunion all\n"


class Letters:
    """SQL over the dead letters and the parked rows of one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._names = {"table": table.sql, "name": table.name} | {
            name: TableName(SATELLITES[name], table.schema).sql for name in _TABLES
        }
        self._names |= {part: _strip_comments(query(_FILE, part)) for part in _PARTS}

    def sql(self, block: str) -> str:
        """Returns one block of `sql/dead_letter_list.sql`."""
        return query(_FILE, block, **self._names)

    def branches(self, filter_: DeadLetterFilter, arguments: "Arguments") -> "Sequence[Branch]":
        """Selects that `filter_` needs, one for each table that can have matches."""
        branches = []
        if _may_match_letters(filter_):
            branches.append(self._letters_branch(filter_, arguments))
        is_open = filter_.status is None or DeadLetterStatus.OPEN in as_sequence(filter_.status)
        if is_open and filter_.source in (None, Source.RELAY) and (filter_.ids is None or parked_ids(filter_.ids)):
            branches.append(Branch(1, self.sql("parked"), self._parked_conditions(filter_, arguments)))
        return branches

    def grouped(self, by: GroupBy, filter_: DeadLetterFilter, most: int, arguments: "Arguments") -> str | None:
        """Statement that counts the dead letters of `filter_` by a common value; None if no dead letter can match."""
        branches = self.branches(filter_, arguments)
        if not branches:
            return None
        once_requeued = self.sql("never_requeued")
        if _may_match_letters(filter_):
            once_requeued = self._letters_branch(replace(filter_, status=None), arguments).where(
                "(status = 'requeued' or deaths > 1)"
            )
        selects = []
        for branch in branches:
            if by == "routing_key" and branch.kind == 0 and filter_.routing_key is None:
                # One select for each index: short keys are indexed whole, long ones by hash.
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
        """Statement that counts the values of `fields` in the latest `most` dead letters; None if no dead letter can match."""
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

    def _letters_branch(self, filter_: DeadLetterFilter, arguments: "Arguments") -> "Branch":
        add = arguments.add
        conditions = _common_conditions(filter_, arguments)
        if filter_.ids is not None:
            conditions.append(f"id = any({add(dead_ids(filter_.ids))}::bigint[])")
        conditions += _text_conditions(filter_, arguments)
        # Literals instead of parameters: only then can a generic plan use the partial index of open dead letters.
        for column, chosen in (("source", filter_.source), ("status", filter_.status)):
            if chosen is not None:
                values = ", ".join(f"'{each.value}'" for each in as_sequence(chosen))
                conditions.append(f"{column} in ({values})" if "," in values else f"{column} = {values}")
        if filter_.group_id is not None:
            conditions.append(_equal("fingerprint", filter_.group_id, arguments))
        if filter_.without_groups:
            conditions.append(f"fingerprint <> all({add(filter_.without_groups)}::text[])")
        if filter_.min_failures is not None:
            conditions.append(f"{_FAILED_ATTEMPTS} >= {add(filter_.min_failures)}")
        if filter_.destination is not None:
            conditions.append(f"source = 'relay' and coalesce(destination, 'default') = {add(filter_.destination)}")
        if filter_.q is not None:
            conditions.append(f"search @@ websearch_to_tsquery('simple', {add(filter_.q)})")
        return Branch(0, self.sql("letters"), conditions)

    def _parked_conditions(self, filter_: DeadLetterFilter, arguments: "Arguments") -> Sequence[str]:
        add, names = arguments.add, self._names
        conditions = ["failed_at is not null", *_common_conditions(filter_, arguments)]
        if filter_.ids is not None:
            conditions.append(f"id = any({add(parked_ids(filter_.ids))}::bigint[])")
        for value, expression in (
            (filter_.routing_key, "routing_key"),
            (filter_.queue, "coalesce(target_queue, '')"),
            (filter_.exception_type, names["parked_type"]),
            (filter_.group_id, names["parked_fingerprint"]),
            (filter_.message_id, names["parked_message_id"]),
        ):
            if value is not None:
                conditions.append(_equal(expression, value, arguments))
        if filter_.without_groups:
            conditions.append(f"{names['parked_fingerprint']} <> all({add(filter_.without_groups)}::text[])")
        if filter_.min_failures is not None:
            conditions.append(f"attempts >= {add(filter_.min_failures)}")
        if filter_.destination is not None:
            own = destination_table(self._table, filter_.destination)
            conditions.append(f"tableoid = to_regclass({add(own.sql)})")
        if filter_.q is not None:
            conditions.append(f"{names['parked_search']} @@ websearch_to_tsquery('simple', {add(filter_.q)})")
        return conditions


@dataclass(frozen=True, slots=True)
class Branch:
    """Part of a list that is read from one table: a select and its conditions. `kind` orders equal rows of both tables."""

    kind: int
    select: str
    conditions: Sequence[str]

    def where(self, *more: str) -> str:
        """Returns the select with its conditions."""
        conditions = [*self.conditions, *more]
        return f"{self.select}\nwhere {' and '.join(conditions)}" if conditions else self.select


@dataclass(slots=True)
class Arguments:
    """Arguments of a statement that is being built."""

    values: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> str:
        """Appends an argument, and returns its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"


def grouping_bits(fields: Sequence[FacetField]) -> Mapping[FacetField, int]:
    """Value of SQL's `grouping` for the rows of each field: all bits set except its own, the first field's the highest."""
    every = 2 ** len(fields) - 1
    return {name: every ^ (1 << (len(fields) - 1 - index)) for index, name in enumerate(fields)}


def dead_ids(ids: Sequence[str]) -> list[int]:
    """Row ids of dead letters among `ids`."""
    numbers = [(text, int(text)) for text in ids if text.isascii() and text.isdecimal() and len(text) < 20]
    # Only the canonical form: results are reported by id, and "017" would come back as "17".
    return [number for text, number in numbers if text == str(number) and number <= _MAX_ID]


def parked_ids(ids: Sequence[str]) -> list[int]:
    """Row ids of parked messages among `ids`."""
    return dead_ids([id_.removeprefix(PARKED_PREFIX) for id_ in ids if id_.startswith(PARKED_PREFIX)])


def is_letter_id(text: str) -> bool:
    """Whether `text` has the form of a dead letter's or a parked message's id."""
    return bool(dead_ids([text]) or parked_ids([text]))


def _may_match_letters(filter_: DeadLetterFilter) -> bool:
    return filter_.ids is None or bool(dead_ids(filter_.ids))


def _text_conditions(filter_: DeadLetterFilter, arguments: Arguments) -> Iterator[str]:
    if filter_.queue is not None:
        yield _equal("queue", filter_.queue, arguments)
    if filter_.message_id is not None:
        yield _equal("message_id", filter_.message_id, arguments)
    if filter_.routing_key is not None:
        keys = as_sequence(filter_.routing_key)
        short, long = [key for key in keys if len(key) <= 255], [key for key in keys if len(key) > 255]
        by_length = [f"{_equal('routing_key', short, arguments)} and {_SHORT}"] if short else []
        by_length += [f"{_hashed('routing_key', long, arguments)} and {_LONG}"] if long else []
        yield by_length[0] if len(by_length) == 1 else " or ".join(f"({each})" for each in by_length).join("()")
    if filter_.exception_type is not None:
        yield _hashed("exception_type", filter_.exception_type, arguments)


def as_sequence(value: Any) -> Sequence[Any]:
    """Wraps a single value in a tuple."""
    return value if isinstance(value, tuple | list) else (value,)


def _equal(column: str, value: str | Sequence[str], arguments: Arguments) -> str:
    values = as_sequence(value)
    return f"{column} = {arguments.add(values[0])}" if len(values) == 1 else f"{column} = any({arguments.add(values)}::text[])"


def _hashed(column: str, value: str | Sequence[str], arguments: Arguments) -> str:
    """Equality in a form that the index on the hash supports."""
    # Values can be longer than an index takes, so it has their hashes. Different values can have the same one.
    values = as_sequence(value)
    if len(values) == 1:
        placeholder = arguments.add(values[0])
        return f"hashtextextended({column}, 0) = hashtextextended({placeholder}, 0) and {column} = {placeholder}"
    placeholder = f"{arguments.add(values)}::text[]"
    hashes = f"array(select hashtextextended(value, 0) from unnest({placeholder}) as given (value))"
    return f"hashtextextended({column}, 0) = any({hashes}) and {column} = any({placeholder})"


def _common_conditions(filter_: DeadLetterFilter, arguments: Arguments) -> list[str]:
    add = arguments.add
    conditions = []
    if filter_.tracking_id is not None:
        conditions.append(f"tracking_ids @> {add(json.dumps([filter_.tracking_id], ensure_ascii=False))}::text::jsonb")
    if filter_.failed_after is not None:
        conditions.append(f"failed_at >= {add(filter_.failed_after)}")
    if filter_.failed_before is not None:
        conditions.append(f"failed_at < {add(filter_.failed_before)}")
    return conditions


def _strip_comments(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--"))


_FAILED_ATTEMPTS = _strip_comments(query(_FILE, "failed_attempts"))


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


class Selection:
    """Builds the queries that select dead letters of one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    def oldest(self, selector: Sequence[str] | DeadLetterFilter, limit: int | None, arguments: Arguments) -> str:
        """Query for the oldest `limit` dead letters. Ids are returned even where no such dead letter exists."""
        if isinstance(selector, DeadLetterFilter):
            return self.rows(selector, limit, arguments)
        return _limited(_GIVEN.format(ids=arguments.add(list(selector))), limit, arguments)

    def rows(self, selector: DeadLetterFilter, limit: int | None, arguments: Arguments) -> str:
        """Query for the oldest `limit` list rows that match `selector`."""
        branches = [f"({branch.where()})" for branch in self._letters.branches(selector, arguments)]
        return _limited(_UNION.join(branches) or _NONE, limit, arguments)


def with_default_status(selector: DeadLetterFilter, action: Action, *, force: bool) -> DeadLetterFilter:
    """Restricts `selector` to the status that `action` applies to, unless it names one."""
    if selector.status is not None or (action is Action.PURGE and force):
        return selector
    return replace(
        selector, status=DeadLetterStatus.OPEN if action in (Action.REQUEUE, Action.DISCARD) else DeadLetterStatus.DISCARDED
    )


def oldest_ids(ids: Sequence[str], limit: int | None) -> Sequence[str]:
    """Those of `ids` that an operation would process first, at most `limit` (None: all), in the order given."""
    if limit is None or len(ids) <= limit:
        return ids
    kept = set(sorted(ids, key=_processing_order)[:limit])
    return [id_ for id_ in ids if id_ in kept]


def _processing_order(id_: str) -> tuple[int, int]:
    """Sort key of an id: dead letters by number, then parked messages by number, then malformed ids."""
    for kind, numbers in enumerate((dead_ids([id_]), parked_ids([id_]))):
        for number in numbers:
            return kind, number
    return 2, 0


def _limited(selection: str, limit: int | None, arguments: Arguments) -> str:
    if limit is None:
        return selection
    return f"select *\nfrom (\n{selection}\n) as every_one\norder by kind, number\nlimit {arguments.add(limit)}"
