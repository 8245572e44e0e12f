"""Reads dead letters: pages, details, groups, counts. Changes and locks nothing."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import asyncpg

from outbox.core.failures import decode_failures
from outbox.core.fingerprint import group_title
from outbox.core.message import NO_HEADERS
from outbox.core.outcome import Failure
from outbox.dead_letters.filters import Arguments, Branch, Letters, dead_ids, grouping_bits, parked_ids
from outbox.dead_letters.model import (
    FACET_FIELDS,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterStatus,
    Edition,
    FacetField,
    Facets,
    Group,
    GroupBy,
    Position,
    Sort,
    Source,
)
from outbox.masking import Masking, preview, sized
from outbox.postgres.pool import Connection, Pool, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import SATELLITES

MOST_AT_ONCE = 1_000
"""Most lines of one page, and most groups."""
STATEMENT_TIMEOUT = timedelta(seconds=30)
"""Longest wait for one answer."""
EVERYTHING = DeadLetterFilter()
Reading = Callable[[str], AbstractAsyncContextManager[Connection]]
"""Gives a connection for what the text says."""


class DeadLetterListing:
    """Dead letters, and with them the rows of the outbox table that the relay parked.

    Every method raises `DatabaseUnavailableError` while the database is away. `masking` is applied to what is shown. `reading`
    gives connections and says what they are for; without it they are taken out of `pool`.
    """

    def __init__(self, pool: Pool, table: TableName, *, masking: Masking | None = None, reading: Reading | None = None) -> None:
        self._reading = reading or _reading(pool)
        self._letters = Letters(table)
        self._masking = masking or Masking()

    async def list(
        self,
        filter_: DeadLetterFilter = EVERYTHING,
        *,
        limit: int = 50,
        after: Position | None = None,
        before: Position | None = None,
        sort: Sort = "newest",
    ) -> Sequence[DeadLetter]:
        """Up to `limit` that fit `filter_`, those that died last first, or last.

        Those next behind the position `after`; or those next before the position `before`, in the same order. Pages do not
        shift: what dies meanwhile comes before the first page, or after the last one.
        """
        if before is None:
            return await self._read(filter_, limit, after, sort)
        backwards = await self._read(filter_, limit, before, "oldest" if sort == "newest" else "newest")
        return backwards[::-1]

    async def _read(self, filter_: DeadLetterFilter, limit: int, position: Position | None, sort: Sort) -> Sequence[DeadLetter]:
        arguments = Arguments()
        order = "desc" if sort == "newest" else "asc"
        most = arguments.add(max(1, min(limit, MOST_AT_ONCE)))
        parts = []
        for branch in self._letters.branches(filter_, arguments):
            behind = [] if position is None else [_behind(position, branch, sort, arguments)]
            parts.append(f"({branch.where(*behind)}\norder by failed_at {order}, id {order}\nlimit {most})")
        if not parts:
            return []
        statement = _LIST.format(letters="\nunion all\n".join(parts), order=order, most=most)
        return [self._letter(row) for row in await self._fetch("listing dead letters", statement, *arguments.values)]

    async def get(self, id_: str, *, most_bytes: int | None = None) -> DeadLetterDetail | None:
        """The dead letter with that id and all its details; None if there is none, or no longer.

        Of its bodies no more than the first `most_bytes` are read.
        """
        found = await self.list(DeadLetterFilter(ids=(id_,)), limit=1)
        parked = parked_ids([id_])
        block, numbers = ("parked_detail", parked) if parked else ("detail", dead_ids([id_]))
        rows = await self._fetch("reading a dead letter", self._letters.sql(block), *numbers, most_bytes) if found else []
        if not rows:
            return None
        editions = (
            [] if parked else await self._fetch("reading its editions", self._letters.sql("editions"), *numbers, most_bytes)
        )
        letter, row = found[0], rows[0]
        return DeadLetterDetail(
            letter=letter,
            body=row["body"],
            headers=_mapping(row["headers"]),
            properties=_mapping(row["properties"]),
            header_types=_mapping(row["header_types"]),
            hlc=row["hlc"],
            failure=Failure(
                type=letter.exception_type,
                message=row["whole_message"] or "",
                traceback=row["exception_traceback"],
                worker=letter.worker,
                version=letter.service_version or "",
            ),
            trail=decode_failures(row["trail"]),
            editions=[
                Edition(**{**dict(each), "headers": None if each["headers"] is None else _mapping(each["headers"])})
                for each in editions
            ],
        )

    async def count(self, filter_: DeadLetterFilter = EVERYTHING, *, most: int | None = None) -> int:
        """How many fit `filter_`. With `most`, nothing beyond that many is counted."""
        arguments = Arguments()
        branches = self._letters.branches(filter_, arguments)
        if not branches:
            return 0
        # A limit of null is none.
        limit = f"limit {arguments.add(most)}::bigint"
        letters = "\nunion all\n".join(f"(select 1 from ({branch.where()}) as each {limit})" for branch in branches)
        statement = f"select count(*) from (select 1 from (\n{letters}\n) as fitting {limit}) as counted"
        [row] = await self._fetch("counting dead letters", statement, *arguments.values)
        count: int = row[0]
        return count

    async def groups(
        self, by: GroupBy = "fingerprint", filter_: DeadLetterFilter = EVERYTHING, *, limit: int = 100
    ) -> Sequence[Group]:
        """Those that fit `filter_`, counted by what they have in common, the largest group first."""
        arguments = Arguments()
        statement = self._letters.grouped(by, filter_, max(1, min(limit, MOST_AT_ONCE)), arguments)
        if statement is None:
            return []
        rows = await self._fetch("grouping dead letters", statement, *arguments.values)
        titles: dict[str, str] = {}
        queues: dict[str, str] = {}
        if by == "fingerprint":
            samples, block = [row["sample"] for row in rows], self._letters.sql("failures")
            masked = self._masking.masked_text
            for letter, type_, message, trace, queue in await self._fetch(
                "naming groups", block, dead_ids(samples), parked_ids(samples)
            ):
                titles[letter] = group_title(Failure(masked(type_), masked(message or ""), trace))
                queues[letter] = queue
        groups = []
        for row in rows:
            by_hour = json.loads(row["hours"])
            groups.append(
                Group(
                    by=by,
                    id=row["key"],
                    title=titles.get(row["sample"]) or row["key"],
                    count=row["count"],
                    open=row["open"],
                    first_seen=row["first_seen"],
                    last_seen=row["last_seen"],
                    last_requeued_at=row["last_requeued_at"],
                    since_requeue=row["since_requeue"],
                    sample_id=row["sample"],
                    deaths_by_hour=tuple(by_hour.get(str(hour), 0) for hour in range(24)),
                    queue=queues.get(row["sample"], ""),
                )
            )
        return groups

    async def facets(
        self, filter_: DeadLetterFilter = EVERYTHING, fields: Sequence[FacetField] = FACET_FIELDS, *, limit: int = 20, most: int
    ) -> Facets:
        """How many of those that fit `filter_` have which value, the `limit` most frequent of each of `fields`.

        Of the latest `most` letters, and as many parked messages.
        """
        arguments = Arguments()
        statement = self._letters.faceted(filter_, fields, limit, most, arguments)
        rows = [] if statement is None else await self._fetch("counting values", statement, *arguments.values)
        return {
            name: [(row["value"], row["count"]) for row in rows if row["field"] == bits]
            for name, bits in grouping_bits(fields).items()
        }

    def _letter(self, row: asyncpg.Record) -> DeadLetter:
        values = dict(row)
        shown = values.pop("shown")
        for name in ("number", "kind"):
            del values[name]
        values["id"] = values.pop("letter")
        values["source"] = Source(values["source"])
        values["status"] = DeadLetterStatus(values["status"])
        try:
            ids = json.loads(values["tracking_ids"])
        except (ValueError, RecursionError):
            ids = None
        values["tracking_ids"] = tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else ()
        values["exception_message"] = self._masking.masked_text(values["exception_message"] or "")
        content_type = values["content_type"]
        if values["preview"] is None:  # of a parked one it is not written down
            size = values["size"]
            values["preview"] = sized(content_type, size) if shown is None else preview(shown, content_type, self._masking)
        else:  # once more: it may have been written down before something was to be hidden
            values["preview"] = self._masking.masked_preview(values["preview"])
        return DeadLetter(**values)

    async def _fetch(self, doing: str, statement: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        async with self._reading(doing) as connection:
            return await connection.fetch(statement, *arguments, timeout=STATEMENT_TIMEOUT.total_seconds())


_LIST = """
select *
from (
    {letters}
) as listed
order by failed_at {order}, number {order}, kind {order}
limit {most}
"""


def _reading(pool: Pool) -> Reading:
    @asynccontextmanager
    async def reading(doing: str) -> AsyncIterator[Connection]:
        with unavailable_errors(doing, limit=STATEMENT_TIMEOUT):
            async with taken_from(pool) as connection:
                yield connection

    return reading


def _behind(after: Position, branch: Branch, sort: Sort, arguments: Arguments) -> str:
    """Whether a row comes after that position. Of two with one time and number, the parked one is the later."""
    parked = parked_ids([after.id])
    kind, numbers = (1, parked) if parked else (0, dead_ids([after.id]))
    number = numbers[0] if numbers else 0
    from_it_on = after.inclusive and branch.kind == kind
    if sort == "newest":
        number += branch.kind < kind or from_it_on
        sign = "<"
    else:
        number -= branch.kind > kind or from_it_on
        sign = ">"
    return f"(failed_at, id) {sign} ({arguments.add(after.failed_at)}::timestamptz, {arguments.add(number)}::bigint)"


def _mapping(text: str | None) -> Mapping[str, Any]:
    """A JSON object; nothing for what is none, or is too large a number or too deep for Python."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return NO_HEADERS
    return value if isinstance(value, dict) else NO_HEADERS


LONGEST_GROUP = 2_000
"""Bytes of the longest id of a group that can be noted about: it is a key."""


@dataclass(frozen=True, slots=True)
class GroupNote:
    """A note, by whom and when."""

    text: str
    noted_by: str
    noted_at: datetime


class GroupNotes:
    """The notes next to one outbox table. Every method takes the connection whose transaction it is to be part of."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("notes.sql", group_note=TableName(SATELLITES["group_note"], table.schema).sql)

    async def of(self, connection: Connection, by: GroupBy, groups: Sequence[str]) -> Mapping[str, GroupNote]:
        """The notes about `groups`, by their ids."""
        rows = await connection.fetch(self._sql["notes"], by, list(groups))
        return {row["group_id"]: GroupNote(row["text"], row["noted_by"], row["noted_at"]) for row in rows}

    async def set(self, connection: Connection, by: GroupBy, group: str, text: str, noted_by: str) -> GroupNote:
        """Notes `text` about a group, in the place of what was noted before."""
        [row] = await connection.fetch(self._sql["set_note"], by, group, text, noted_by)
        return GroupNote(row["text"], row["noted_by"], row["noted_at"])

    async def clear(self, connection: Connection, by: GroupBy, group: str) -> None:
        """Forgets what was noted about a group."""
        await connection.execute(self._sql["clear_note"], by, group)


class GroupStatus(StrEnum):
    """What a group of failures with a common fingerprint is to operators.

    `FIXED` and `MUTED` are what an operator marked it as; `REOPENED`: it was, but failed again, or more often than allowed.
    """

    OPEN = "open"
    FIXED = "fixed"
    MUTED = "muted"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMark:
    """What an operator marked a group as, and whether that still holds.

    `fixed_in` is the release that a fix is part of; failures in releases that are known to fail do not count against it then.
    A muted group stays so while at most `muted_above` letters are open. `since_count` and `since_at` are how many failed after
    the group was fixed, counted up to a thousand, and when the first of them did.
    """

    marked_as: GroupStatus
    fixed_in: str | None
    muted_above: int | None
    marked_by: str
    marked_at: datetime
    since_count: int
    since_at: datetime | None
    holds: bool

    @property
    def status(self) -> GroupStatus:
        """What the group is now."""
        return self.marked_as if self.holds else GroupStatus.REOPENED


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersion:
    """A release of the service in which letters of a group failed."""

    service_version: str
    count: int
    first_failed_at: datetime
    last_failed_at: datetime


class GroupMarks:
    """The marks of groups, and the releases that they failed in. Every method is part of the connection's transaction."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    async def all(self, connection: Connection) -> Mapping[str, GroupMark]:
        """Every mark by the group's id, judged by what failed since: nothing is written when a group is reopened."""
        return {
            row["group_id"]: GroupMark(
                marked_as=GroupStatus(row["status"]),
                fixed_in=row["fixed_in"],
                muted_above=row["muted_above"],
                marked_by=row["marked_by"],
                marked_at=row["marked_at"],
                since_count=row["since_count"],
                since_at=row["since_at"],
                holds=row["open_count"] <= (row["muted_above"] or 0) and not row["since_count"],
            )
            for row in await connection.fetch(self._letters.sql("marks"))
        }

    async def set(
        self,
        connection: Connection,
        group: str,
        status: GroupStatus,
        *,
        fixed_in: str | None = None,
        muted_above: int | None = None,
        marked_by: str,
    ) -> None:
        """Marks a group as `FIXED` or `MUTED` from now on; `OPEN` takes its mark away."""
        if status is GroupStatus.OPEN:
            await connection.execute(self._letters.sql("clear_mark"), group)
        else:
            await connection.execute(self._letters.sql("set_mark"), group, status.value, fixed_in, muted_above, marked_by)

    async def versions(
        self, connection: Connection, groups: Sequence[str], *, most: int
    ) -> Mapping[str, Sequence[GroupVersion]]:
        """The releases in which the latest `most` letters of each group failed, the latest first."""
        versions: dict[str, list[GroupVersion]] = {}
        for row in await connection.fetch(self._letters.sql("versions_of"), list(groups), most):
            values = dict(row)
            versions.setdefault(values.pop("fingerprint"), []).append(GroupVersion(**values))
        return versions


class RequeueOutcome(StrEnum):
    """The outcome of a requeue; `IN_PROGRESS`: none in the history yet."""

    IN_PROGRESS = "in_progress"
    PROCESSED = "processed"
    FAILED_AGAIN = "failed_again"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """What came of one requeue. `queue` is where it was requeued to; None: wherever its routing key leads."""

    requeued_at: datetime
    requeued_by: str
    queue: str | None
    outcome: RequeueOutcome = RequeueOutcome.IN_PROGRESS
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOn:
    """What an operation was to do with a dead letter, and what came of it."""

    id: str
    action: str
    outcome: str
    detail: str | None
    settled_at: datetime | None


class RequeueHistory:
    """Reads what came of requeues, next to one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    async def requeues(self, connection: Connection, message_id: str | None) -> Sequence[Requeue]:
        """What came of each requeue of a message, oldest first; none where there is no history of it."""
        if message_id is None:
            return []
        requeues: list[Requeue] = []
        for fact in await connection.fetch(self._letters.sql("requeues_of"), message_id):
            if fact["fact"] == "requeued":
                requeues.append(Requeue(requeued_at=fact["at"], requeued_by=fact["component"], queue=fact["queue"]))
                continue
            # A fact ends the oldest requeue to its queue; one that went anywhere is ended by the first.
            for place, requeue in enumerate(requeues):
                if requeue.outcome is RequeueOutcome.IN_PROGRESS and requeue.queue in (None, fact["queue"]):
                    requeues[place] = replace(requeue, outcome=_OUTCOMES[fact["fact"]], ended_at=fact["at"])
                    break
        return requeues

    async def operations(self, connection: Connection, letter: str) -> Sequence[OperationOn]:
        """The operations that have or had the dead letter of that id, the latest first."""
        rows = await connection.fetch(self._letters.sql("operations_of"), letter)
        return [OperationOn(**dict(row)) for row in rows]


_OUTCOMES = {"processed": RequeueOutcome.PROCESSED, "died": RequeueOutcome.FAILED_AGAIN, "duplicate": RequeueOutcome.DUPLICATE}
