"""Reads dead letters: pages, details, groups, counts; and the notes and marks of groups. Reading locks nothing."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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

MAX_PAGE_SIZE = 1_000
"""Most dead letters or groups of one page."""
STATEMENT_TIMEOUT = timedelta(seconds=30)
EVERYTHING = DeadLetterFilter()
ConnectionSource = Callable[[str], AbstractAsyncContextManager[Connection]]
"""Lends a connection. The text says what for, and appears in errors."""


class DeadLetterListing:
    """Lists dead letters together with the parked messages of the outbox table.

    Every method raises `DatabaseUnavailableError` while the database is away. `masking` applies to errors and previews.
    Connections come from `reading`, or without it from `pool`.
    """

    def __init__(
        self, pool: Pool, table: TableName, *, masking: Masking | None = None, reading: ConnectionSource | None = None
    ) -> None:
        self._reading = reading or _connections_of(pool)
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
        """Up to `limit` dead letters that match `filter_`, sorted by the time of failure.

        Returns the dead letters next after the position `after`, or the nearest before the position `before`, in the same
        order. Pages do not shift: new dead letters come before the first page, or after the last one.
        """
        if before is None:
            return await self._read(filter_, limit, after, sort)
        backwards = await self._read(filter_, limit, before, "oldest" if sort == "newest" else "newest")
        return backwards[::-1]

    async def _read(self, filter_: DeadLetterFilter, limit: int, position: Position | None, sort: Sort) -> Sequence[DeadLetter]:
        arguments = Arguments()
        order = "desc" if sort == "newest" else "asc"
        most = arguments.add(max(1, min(limit, MAX_PAGE_SIZE)))
        parts = []
        for branch in self._letters.branches(filter_, arguments):
            behind = [] if position is None else [_follows(position, branch, sort, arguments)]
            parts.append(f"({branch.where(*behind)}\norder by failed_at {order}, id {order}\nlimit {most})")
        if not parts:
            return []
        statement = _LIST.format(letters="\nunion all\n".join(parts), order=order, most=most)
        return [self._to_letter(row) for row in await self._fetch("listing dead letters", statement, *arguments.values)]

    async def get(self, id_: str, *, most_bytes: int | None = None) -> DeadLetterDetail | None:
        """Returns the dead letter with all its details, or None if there is none with that id.

        Reads only the first `most_bytes` of each body.
        """
        found = await self.list(DeadLetterFilter(ids=(id_,)), limit=1)
        parked = parked_ids([id_])
        block, numbers = ("parked_detail", parked) if parked else ("detail", dead_ids([id_]))
        rows = await self._fetch("reading a dead letter", self._letters.sql(block), *numbers, most_bytes) if found else []
        # It may be gone since the statement before, as by a purge.
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
            failed_attempts=decode_failures(row["failures"]),
            editions=[
                Edition(**{**dict(each), "headers": None if each["headers"] is None else _mapping(each["headers"])})
                for each in editions
            ],
        )

    async def count(self, filter_: DeadLetterFilter = EVERYTHING, *, most: int | None = None) -> int:
        """Number of dead letters that match `filter_`, counted up to `most`."""
        arguments = Arguments()
        branches = self._letters.branches(filter_, arguments)
        if not branches:
            return 0
        # SQL takes `limit null` as no limit.
        limit = f"limit {arguments.add(most)}::bigint"
        letters = "\nunion all\n".join(f"(select 1 from ({branch.where()}) as each {limit})" for branch in branches)
        statement = f"select count(*) from (select 1 from (\n{letters}\n) as fitting {limit}) as counted"
        [row] = await self._fetch("counting dead letters", statement, *arguments.values)
        count: int = row[0]
        return count

    async def groups(
        self, by: GroupBy = "fingerprint", filter_: DeadLetterFilter = EVERYTHING, *, limit: int = 100
    ) -> Sequence[Group]:
        """Counts the dead letters that match `filter_` by a common value, the largest group first."""
        arguments = Arguments()
        statement = self._letters.grouped(by, filter_, max(1, min(limit, MAX_PAGE_SIZE)), arguments)
        if statement is None:
            return []
        rows = await self._fetch("grouping dead letters", statement, *arguments.values)
        titles: dict[str, str] = {}
        queues: dict[str, str] = {}
        if by == "fingerprint":
            # In a second statement: tracebacks are long, so only those of the groups that are shown are read.
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
                    hourly_counts=tuple(by_hour.get(str(hour), 0) for hour in range(24)),
                    queue=queues.get(row["sample"], ""),
                )
            )
        return groups

    async def facets(
        self, filter_: DeadLetterFilter = EVERYTHING, fields: Sequence[FacetField] = FACET_FIELDS, *, limit: int = 20, most: int
    ) -> Facets:
        """Counts values of `fields` among the dead letters that match `filter_`: the `limit` most frequent of each field.

        Considers only the latest `most` dead letters, and as many parked messages.
        """
        arguments = Arguments()
        statement = self._letters.faceted(filter_, fields, limit, most, arguments)
        rows = [] if statement is None else await self._fetch("counting values", statement, *arguments.values)
        return {
            name: [(row["value"], row["count"]) for row in rows if row["field"] == bits]
            for name, bits in grouping_bits(fields).items()
        }

    def _to_letter(self, row: asyncpg.Record) -> DeadLetter:
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
        if values["preview"] is None:
            # The outbox table stores no preview, so a parked message gets it here.
            size = values["size"]
            values["preview"] = sized(content_type, size) if shown is None else preview(shown, content_type, self._masking)
        else:
            # Mask the stored preview again: names may have been added to the masking since it was written.
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


def _connections_of(pool: Pool) -> ConnectionSource:
    @asynccontextmanager
    async def reading(doing: str) -> AsyncIterator[Connection]:
        with unavailable_errors(doing, limit=STATEMENT_TIMEOUT):
            async with taken_from(pool) as connection:
                yield connection

    return reading


def _follows(after: Position, branch: Branch, sort: Sort, arguments: Arguments) -> str:
    """Condition for rows that follow a position. At equal time and number, a parked message is later than a dead letter."""
    parked = parked_ids([after.id])
    kind, numbers = (1, parked) if parked else (0, dead_ids([after.id]))
    number = numbers[0] if numbers else 0
    includes_it = after.inclusive and branch.kind == kind
    # A comparison of (failed_at, id) can use an index, so ties between the tables move the number by one instead.
    if sort == "newest":
        number += branch.kind < kind or includes_it
        sign = "<"
    else:
        number -= branch.kind > kind or includes_it
        sign = ">"
    return f"(failed_at, id) {sign} ({arguments.add(after.failed_at)}::timestamptz, {arguments.add(number)}::bigint)"


def _mapping(text: str | None) -> Mapping[str, Any]:
    """Parses a JSON object. Empty if it is no object, or if Python cannot parse it (huge numbers, deep nesting)."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return NO_HEADERS
    return value if isinstance(value, dict) else NO_HEADERS


MAX_GROUP_ID_BYTES = 2_000
"""Longest group id that can have a note: it has to fit into an index."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class GroupNote:
    """Note about a group, with its author and time."""

    text: str
    noted_by: str
    noted_at: datetime

    @property
    def version(self) -> int:
        """A number from 1 to 2^31 - 1 that changes with the note: its time in microseconds, without the higher bits."""
        return (self.noted_at - _EPOCH) // timedelta(microseconds=1) % 2**31 or 1


class GroupNotes:
    """Notes about groups, next to one outbox table. Every method runs in the transaction of its `connection`."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("notes.sql", group_note=TableName(SATELLITES["group_note"], table.schema).sql)

    async def of(self, connection: Connection, by: GroupBy, groups: Sequence[str]) -> Mapping[str, GroupNote]:
        """Returns the notes about `groups` by their ids."""
        rows = await connection.fetch(self._sql["notes"], by, list(groups))
        return {row["group_id"]: GroupNote(row["text"], row["noted_by"], row["noted_at"]) for row in rows}

    async def set(
        self, connection: Connection, by: GroupBy, group: str, text: str, noted_by: str, *, version: int | None
    ) -> GroupNote | None:
        """Replaces the note about a group, or deletes it if `text` is empty. Returns the note that the group has afterwards.

        With a `version`, where 0 is that of no note, a note with another version stays, and is returned.
        """
        current = await connection.fetchrow(self._sql["lock_note"], by, group)
        note = None if current is None else GroupNote(*current)
        if version is not None and version != (note.version if note else 0):
            return note
        if not text:
            await connection.execute(self._sql["clear_note"], by, group)
            return None
        # A note that is missing cannot be locked: with version 0, one that another operator adds meanwhile stays.
        await connection.execute(self._sql["set_note"], by, group, text, noted_by, version != 0)
        return (await self.of(connection, by, [group])).get(group)


class GroupStatus(StrEnum):
    """Status of a group of failures with a common fingerprint.

    An operator marks a group as `FIXED` or `MUTED`. `REOPENED`: it was marked, but failed again, or more often than allowed.
    """

    OPEN = "open"
    FIXED = "fixed"
    MUTED = "muted"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMark:
    """Mark that an operator set on a group, and whether it still holds.

    `fixed_in` is the release that contains the fix; failures in releases known to fail then do not reopen the group. A group
    stays muted while at most `muted_above` dead letters are open. `since_count` counts failures after the group was fixed,
    up to a thousand, and `since_at` is the time of the first.
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
        """Current status of the group."""
        return self.marked_as if self.holds else GroupStatus.REOPENED


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersion:
    """A release of the service in which dead letters of a group failed."""

    service_version: str
    count: int
    first_failed_at: datetime
    last_failed_at: datetime


class GroupMarks:
    """Marks of groups, and the releases in which they failed. Every method runs in the transaction of its `connection`."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    async def all(self, connection: Connection) -> Mapping[str, GroupMark]:
        """Returns all marks by the id of their group."""
        # Whether a mark holds is decided when it is read: a failure that reopens a group writes nothing.
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
        """Marks a group as `FIXED` or `MUTED`; `OPEN` removes its mark."""
        if status is GroupStatus.OPEN:
            await connection.execute(self._letters.sql("clear_mark"), group)
        else:
            await connection.execute(self._letters.sql("set_mark"), group, status.value, fixed_in, muted_above, marked_by)

    async def versions(
        self, connection: Connection, groups: Sequence[str], *, most: int
    ) -> Mapping[str, Sequence[GroupVersion]]:
        """Returns the releases in which the latest `most` dead letters of each group failed, newest first."""
        versions: dict[str, list[GroupVersion]] = {}
        for row in await connection.fetch(self._letters.sql("versions_of"), list(groups), most):
            values = dict(row)
            versions.setdefault(values.pop("fingerprint"), []).append(GroupVersion(**values))
        return versions


class RequeueOutcome(StrEnum):
    """Outcome of a requeue. `IN_PROGRESS`: the history has none yet."""

    IN_PROGRESS = "in_progress"
    PROCESSED = "processed"
    FAILED_AGAIN = "failed_again"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """One requeue and its outcome. `queue` is the destination; None: all queues bound to the routing key."""

    requeued_at: datetime
    requeued_by: str
    queue: str | None
    outcome: RequeueOutcome = RequeueOutcome.IN_PROGRESS
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOperation:
    """An operation that includes a dead letter, and the outcome for it."""

    id: str
    action: str
    outcome: str
    detail: str | None
    settled_at: datetime | None


class RequeueHistory:
    """Reads the requeues of messages and their outcomes."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    async def requeues(self, connection: Connection, message_id: str | None) -> Sequence[Requeue]:
        """Returns the requeues of a message, oldest first; none if it has no history."""
        if message_id is None:
            return []
        requeues: list[Requeue] = []
        for fact in await connection.fetch(self._letters.sql("requeues_of"), message_id):
            if fact["fact"] == "requeued":
                requeues.append(Requeue(requeued_at=fact["at"], requeued_by=fact["component"], queue=fact["queue"]))
                continue
            # A fact belongs to the oldest unfinished requeue to its queue. A requeue by routing key is ended by the first fact.
            for index, requeue in enumerate(requeues):
                if requeue.outcome is RequeueOutcome.IN_PROGRESS and requeue.queue in (None, fact["queue"]):
                    requeues[index] = replace(requeue, outcome=_OUTCOMES[fact["fact"]], ended_at=fact["at"])
                    break
        return requeues

    async def operations(self, connection: Connection, letter: str) -> Sequence[LetterOperation]:
        """Returns the operations that include the dead letter with that id, newest first."""
        rows = await connection.fetch(self._letters.sql("operations_of"), letter)
        return [LetterOperation(**dict(row)) for row in rows]


_OUTCOMES = {"processed": RequeueOutcome.PROCESSED, "died": RequeueOutcome.FAILED_AGAIN, "duplicate": RequeueOutcome.DUPLICATE}
