"""Dead letters and parked messages are one list: paged without shifting, filtered, searched, grouped, counted."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import asyncpg
import pytest

from outbox.core.failures import FailedAttempt
from outbox.core.fingerprint import fingerprint
from outbox.core.outcome import Failure
from outbox.dead_letters.model import DeadLetter, DeadLetterFilter, DeadLetterStatus, GroupBy, Position, Source
from outbox.dead_letters.reader import DeadLetterListing
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.dead_letters.failed_messages import NOON, TABLE, dead
from tests.postgres_transport.support import explained

MINUTE = timedelta(minutes=1)


@pytest.fixture
def archive(pool: Pool) -> PostgresArchive:
    return PostgresArchive(pool, TABLE)


@pytest.fixture
def listing(pool: Pool) -> DeadLetterListing:
    return DeadLetterListing(pool, TABLE)


async def park(pool: Pool, *, at: datetime = NOON, error: str = "too large: 7 bytes", **columns: Any) -> str:
    """Creates a row that the relay has parked; returns its id as operators know it."""
    values = {"routing_key": "order.placed", "body": b'{"token": "x"}', "tracking_ids": '["p1"]', "attempts": 20} | columns
    values |= {"failed_at": at, "last_error": error}
    names, places = ", ".join(values), ", ".join(f"${number}" for number in range(1, len(values) + 1))
    return (
        f"outbox-{await pool.fetchval(f'insert into outbox_table ({names}) values ({places}) returning id', *values.values())}"
    )


def ids(letters: Sequence[DeadLetter]) -> list[str | None]:
    return [letter.message_id for letter in letters]


async def everything(
    listing: DeadLetterListing, filter_: DeadLetterFilter, *, limit: int = 2, **options: Any
) -> list[DeadLetter]:
    """Reads all pages of two letters each."""
    found: list[DeadLetter] = []
    while page := await listing.list(filter_, limit=limit, after=Position.of(found[-1]) if found else None, **options):
        assert len(page) <= limit
        found += page
    return found


async def test_letters_and_parked_messages_are_one_list_the_latest_first(
    archive: PostgresArchive, listing: DeadLetterListing, pool: Pool
) -> None:
    await archive.record([dead("m1", failed_at=NOON), dead("m2", failed_at=NOON + 2 * MINUTE)])
    parked = await park(pool, at=NOON + MINUTE)
    letters = await listing.list()
    assert ids(letters) == ["m2", "p1", "m1"]
    assert letters[1].id == parked
    assert (letters[1].source, letters[1].status, letters[1].cause) == (Source.RELAY, DeadLetterStatus.OPEN, "refused")
    assert (letters[1].exception_type, letters[1].exception_message) == ("too large", "7 bytes")
    assert (letters[1].attempt, letters[1].failures, letters[1].queue) == (20, 20, "")
    assert (letters[1].preview, letters[1].size) == ('{"token": "***"}', 14)
    assert (letters[0].source, letters[0].queue, letters[0].worker) == (Source.WORKER, "mail", "host:7")


@pytest.mark.parametrize("sort", ["newest", "oldest"])
async def test_pages_neither_repeat_nor_omit_letters_of_the_same_moment(
    archive: PostgresArchive, listing: DeadLetterListing, pool: Pool, sort: Any
) -> None:
    for number in range(5):
        await archive.record([dead(f"m{number}")])
        await park(pool, tracking_ids=f'["p{number}"]')
    await archive.record([dead("later", failed_at=NOON + MINUTE)])
    found = await everything(listing, DeadLetterFilter(), sort=sort)
    assert sorted(letter.message_id or "" for letter in found) == sorted(
        ["later", *(f"{kind}{number}" for kind in "mp" for number in range(5))]
    )
    assert (found if sort == "newest" else found[::-1])[0].message_id == "later"
    assert found == list(await listing.list(limit=100, sort=sort))
    assert found == await everything(listing, DeadLetterFilter(), limit=3, sort=sort)


async def test_new_dead_letters_do_not_shift_the_pages(archive: PostgresArchive, listing: DeadLetterListing) -> None:
    await archive.record([dead(f"m{number}", failed_at=NOON + number * MINUTE) for number in range(4)])
    first = await listing.list(limit=2)
    await archive.record([dead("new", failed_at=NOON + timedelta(hours=1))])
    second = await listing.list(limit=2, after=Position.of(first[-1]))
    assert (ids(first), ids(second)) == (["m3", "m2"], ["m1", "m0"])


OTHER = Failure("KeyError", "'sku'", 'Traceback (most recent call last):\n  File "/srv/shop/stock.py", line 3, in take\n')


@pytest.fixture
async def mixed(archive: PostgresArchive, pool: Pool) -> None:
    """Letters that differ in everything."""
    failures = tuple(FailedAttempt(at=NOON, attempt=number, failure=OTHER) for number in range(1, 6))
    await archive.record(
        [
            dead("m1", b'{"customer": "Ann Smith", "password": "hunter2"}'),
            dead("m2", queue="billing", failure=OTHER, failed_at=NOON + MINUTE, tracking_ids=("root", "m2"), failures=failures),
            dead("m3", routing_key="user.created", by_broker=True, failed_at=NOON + 2 * MINUTE),
        ]
    )
    await pool.execute("update outbox_dead_letter set status = 'requeued' where message_id = 'm3'")
    await park(pool, at=NOON - MINUTE, tracking_ids='["root", "p1"]', target_queue="billing")


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["m3", "m2", "m1", "p1"]),
    ({"source": Source.RELAY}, ["p1"]),
    ({"source": Source.BROKER}, ["m3"]),
    ({"queue": "billing"}, ["m2", "p1"]),
    ({"routing_key": "order.placed"}, ["m2", "m1", "p1"]),
    ({"exception_type": "KeyError"}, ["m2"]),
    ({"exception_type": "too large"}, ["p1"]),
    ({"group_id": fingerprint(OTHER, queue="billing")}, ["m2"]),
    ({"status": DeadLetterStatus.OPEN}, ["m2", "m1", "p1"]),
    ({"status": DeadLetterStatus.REQUEUED}, ["m3"]),
    ({"status": DeadLetterStatus.DISCARDED}, []),
    ({"tracking_id": "root"}, ["m2", "p1"]),
    ({"message_id": "m1"}, ["m1"]),
    ({"message_id": "p1"}, ["p1"]),
    ({"failed_after": NOON}, ["m3", "m2", "m1"]),
    ({"failed_before": NOON}, ["p1"]),
    ({"min_failures": 5}, ["m2", "p1"]),
    ({"min_failures": 6}, ["p1"]),
    ({"destination": "default"}, ["p1"]),
    ({"destination": "kafka"}, []),
    ({"q": "smith"}, ["m1"]),
    ({"q": '"ann smith"'}, ["m1"]),
    ({"q": "hunter2"}, []),
    ({"q": "sku"}, ["m2"]),
    ({"q": "billing"}, ["m2", "p1"]),
    ({"q": "root or smith"}, ["m2", "m1", "p1"]),
    ({"q": "root -billing"}, []),
    ({"q": "'); drop table outbox_dead_letter; --"}, []),
    ({"queue": "billing", "source": Source.WORKER}, ["m2"]),
    ({"ids": ("outbox-99", "99", "x", "", "٣", "9" * 30)}, []),
]


@pytest.mark.usefixtures("mixed")
async def test_a_filter_matches_letters_that_meet_all_its_conditions(listing: DeadLetterListing) -> None:
    for wanted, expected in FILTERS:
        filter_ = DeadLetterFilter(**wanted)
        assert ids(await listing.list(filter_)) == expected, wanted
        assert ids(await everything(listing, filter_)) == expected, wanted
        assert await listing.count(filter_) == len(expected), wanted


@pytest.mark.usefixtures("mixed")
async def test_letters_are_found_by_their_ids_of_both_kinds(listing: DeadLetterListing) -> None:
    wanted = [letter.id for letter in await listing.list()][1:]
    assert {letter.id for letter in await listing.list(DeadLetterFilter(ids=tuple(wanted)))} == set(wanted)
    assert wanted[-1].startswith("outbox-")
    assert await listing.count(DeadLetterFilter(ids=())) == 0


@pytest.mark.usefixtures("mixed")
async def test_a_letter_is_read_with_all_its_details(listing: DeadLetterListing, pool: Pool) -> None:
    await pool.execute(
        "insert into outbox_dead_letter_edition (dead_letter_id, version, body, headers, replaced_by) "
        "select id, 1, 'before', '{\"a\": 1}', 'ann' from outbox_dead_letter where message_id = 'm2'"
    )
    [letter] = await listing.list(DeadLetterFilter(message_id="m2"))
    detail = await listing.get(letter.id)
    assert detail is not None
    assert detail.letter == letter
    assert detail.body == b'{"n": 1}'
    assert detail.failure == Failure(OTHER.type, OTHER.message, OTHER.traceback)
    assert [failed.attempt for failed in detail.failed_attempts] == [1, 2, 3, 4, 5]
    [edition] = detail.editions
    assert (edition.version, edition.body, edition.headers, edition.replaced_by) == (1, b"before", {"a": 1}, "ann")


async def test_a_parked_message_is_read_with_the_details_of_the_relay(listing: DeadLetterListing, pool: Pool) -> None:
    detail = await listing.get(await park(pool, headers='{"tenant": "acme"}', hlc=7))
    assert detail is not None
    assert (detail.body, detail.headers, detail.hlc) == (b'{"token": "x"}', {"tenant": "acme"}, 7)
    assert (detail.failure.type, detail.failure.message, detail.failed_attempts, detail.editions) == (
        "too large",
        "7 bytes",
        [],
        [],
    )


async def test_a_missing_letter_is_none(listing: DeadLetterListing) -> None:
    for id_ in ("1", "outbox-1", "", "x", "-1", "outbox-", "99999999999999999999", "1; drop table x"):
        assert await listing.get(id_) is None


async def test_foreign_rows_do_not_break_the_list(listing: DeadLetterListing, pool: Pool) -> None:
    await park(pool, tracking_ids='{"a": 1}', body=b"\xff" * 5_000)
    await park(pool, tracking_ids="[1, null]", headers='{"n": 1}')
    await pool.execute("update outbox_table set created_at = '-infinity' where id = 1")
    await pool.execute(f"update outbox_table set headers = '{'[' * 3_000 + ']' * 3_000}' where id = 2")
    letters = await listing.list()
    assert [letter.tracking_ids for letter in letters] == [(), ()]
    assert letters[-1].preview == "<binary, 5 kB>"
    for letter in letters:
        assert await listing.get(letter.id) is not None
    await listing.groups()


async def test_error_messages_are_masked_in_the_list_and_whole_in_the_letter(
    archive: PostgresArchive, listing: DeadLetterListing
) -> None:
    await archive.record([dead(failure=Failure("E", "password=hunter2"))])
    [letter] = await listing.list()
    assert letter.exception_message == "password=***"
    detail = await listing.get(letter.id)
    assert detail is not None
    assert detail.failure.message == "password=hunter2"


@pytest.mark.usefixtures("mixed")
async def test_groups_count_what_failed_alike(archive: PostgresArchive, listing: DeadLetterListing, pool: Pool) -> None:
    await archive.record([dead("m4", queue="billing", failure=OTHER, failed_at=NOON + 3 * MINUTE)])
    await park(pool, error="too large: 9 bytes")
    groups = {group.title: group for group in await listing.groups()}
    stock = groups["KeyError: # in shop/stock.py:take"]
    assert (stock.id, stock.count, stock.open) == (fingerprint(OTHER, queue="billing"), 2, 2)
    assert (stock.first_seen, stock.last_seen) == (NOON, NOON + 3 * MINUTE)
    assert (stock.last_requeued_at, stock.since_requeue) == (None, 2)
    assert ids(await listing.list(DeadLetterFilter(group_id=stock.id))) == ["m4", "m2"]
    parked = groups["too large: # bytes"]
    assert parked.count == 2
    assert len(await listing.list(DeadLetterFilter(group_id=parked.id))) == 2
    assert parked.sample_id.startswith("outbox-")


async def test_the_title_of_a_group_is_masked(archive: PostgresArchive, listing: DeadLetterListing, pool: Pool) -> None:
    await archive.record([dead("m1", failure=Failure("Reject", "no user with password=hunter"))])
    await park(pool, error="RefusedError: token=abcdef was refused")
    titles = {group.title for group in await listing.groups()}
    assert titles == {"Reject: no user with password=***", "RefusedError: token=*** was refused"}


@pytest.mark.usefixtures("mixed")
async def test_groups_are_by_queue_or_routing_key_too(listing: DeadLetterListing) -> None:
    by_queue = {group.id: group.count for group in await listing.groups("queue")}
    by_key = {group.id: (group.title, group.count) for group in await listing.groups("routing_key")}
    assert by_queue == {"mail": 2, "billing": 2}
    assert by_key == {"order.placed": ("order.placed", 3), "user.created": ("user.created", 1)}
    assert [
        group.count for group in await listing.groups("queue", DeadLetterFilter(status=DeadLetterStatus.OPEN), limit=1)
    ] == [2]


@pytest.mark.parametrize("length", [255, 256, 20_000])
async def test_routing_keys_of_any_length_are_archived_grouped_and_found(
    archive: PostgresArchive, listing: DeadLetterListing, length: int
) -> None:
    random = Random(length)
    key = "".join(chr(random.randrange(0x10000, 0x14000)) for _ in range(length))  # four bytes each, which nothing compresses
    other = key[:-1] + "!"
    await archive.record([dead("m1", routing_key=key), dead("m2", routing_key=other), dead("m3", routing_key=key)])
    assert {group.id: group.count for group in await listing.groups("routing_key")} == {key: 2, other: 1}
    assert ids(await listing.list(DeadLetterFilter(routing_key=other))) == ["m2"]
    assert [group.count for group in await listing.groups("routing_key", DeadLetterFilter(routing_key=key))] == [2]


async def test_a_group_counts_failures_since_its_last_requeue(
    archive: PostgresArchive, listing: DeadLetterListing, pool: Pool
) -> None:
    await archive.record([dead("m1"), dead("m2")])
    await pool.execute("update outbox_dead_letter set status = 'requeued', resolved_at = $1", NOON + MINUTE)
    await archive.record([dead("m1", requeue_count=1, failed_at=NOON + 2 * MINUTE)])
    [group] = await listing.groups()
    assert (group.count, group.open, group.last_requeued_at, group.since_requeue) == (2, 1, NOON + MINUTE, 1)


async def test_the_list_of_a_database_that_is_away_says_so(database: str, pool: Pool) -> None:
    nowhere = await open_pool("postgresql://user@127.0.0.1:1/none", size=1, application_name="tests")
    with pytest.raises(DatabaseUnavailableError):
        await DeadLetterListing(nowhere, TABLE).list()


# --- plans -------------------------------------------------------------------------------------------------------------

MANY = 20_000


@pytest.fixture
async def large(pool: Pool) -> None:
    """Many letters, nearly all of them resolved, and many parked messages."""
    await pool.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, fingerprint, failed_at, status, search) "
        "select 'worker', 'shop', 'q' || n % 20, 'm' || n, 'order.placed', '{}', jsonb_build_array('root' || n), now(), 1, "
        "'exhausted', 'E' || n % 7, 'no', '', 'f' || n % 100, now() - n * interval '1 s', "
        "case when n % 400 = 0 then 'open' else 'discarded' end, to_tsvector('simple', 'word' || n) "
        f"from generate_series(1, {MANY}) as n"
    )
    await pool.execute(
        "insert into outbox_table (routing_key, body, failed_at, last_error, attempts) "
        f"select 'order.placed', '{{}}', now() - n * interval '1 s', 'nack: no', 20 from generate_series(1, {MANY}) as n"
    )
    await pool.execute("vacuum analyze outbox_dead_letter, outbox_table")


@pytest.mark.usefixtures("large")
async def test_every_list_of_a_large_table_uses_an_index(
    pool: Pool, listing: DeadLetterListing, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (await listing.list(limit=500))[-1]
    worker = Source.WORKER
    ways: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({}, {"sort": "oldest"}),
        ({}, {"after": Position.of(page)}),
        ({"status": DeadLetterStatus.OPEN, "source": worker}, {}),
        ({"status": DeadLetterStatus.OPEN, "source": worker}, {"after": Position.of(page)}),
        ({"queue": "q3", "status": DeadLetterStatus.OPEN, "source": worker}, {}),
        ({"queue": "q3", "source": worker}, {}),
        ({"group_id": "f7", "source": worker}, {}),
        ({"message_id": "m777", "source": worker}, {}),
        ({"tracking_id": "root777", "source": worker}, {}),
        ({"q": "word777", "source": worker}, {}),
        ({"failed_before": page.failed_at}, {}),
        ({}, {"before": Position.of(page)}),
        ({"routing_key": "nothing", "source": worker}, {}),
        ({"exception_type": "nothing", "source": worker}, {}),
        ({"exception_type": "E3", "source": worker}, {"sort": "oldest"}),
        ({"min_failures": 100, "source": worker}, {}),
        ({"ids": ("7", "outbox-9")}, {}),
    ]
    for wanted, options in ways:
        read = await rows_read(pool, listing, monkeypatch, DeadLetterFilter(**wanted), **options)
        assert read <= 2_000, f"{wanted} {options} reads {read} rows"


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("by", "index"), [("fingerprint", "group"), ("queue", "group"), ("routing_key", "key")])
async def test_groups_are_counted_without_reading_the_letters_themselves(
    pool: Pool, listing: DeadLetterListing, monkeypatch: pytest.MonkeyPatch, by: GroupBy, index: str
) -> None:
    nodes = await plan_of(pool, listing, monkeypatch, lambda: listing.groups(by))
    scans = [node for node in nodes if node.get("Relation Name") == "outbox_dead_letter"]
    assert sorted(node["Actual Rows"] for node in scans)[:-1] == [0] * (len(scans) - 1)
    [reading] = [node for node in scans if node["Actual Rows"]]
    assert (reading["Node Type"], reading["Index Name"]) == ("Index Only Scan", f"outbox_dead_letter_{index}_idx")
    assert all(node["Node Type"] != "Seq Scan" for node in scans)
    assert all(node["Actual Rows"] < 5_000 for node in nodes if node["Node Type"] == "Sort")


@pytest.mark.usefixtures("large")
async def test_counts_and_facets_stop_at_their_limits(
    pool: Pool, listing: DeadLetterListing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for counting in (lambda: listing.count(most=100), lambda: listing.facets(most=100)):
        nodes = await plan_of(pool, listing, monkeypatch, counting)
        assert all(node["Actual Rows"] <= 1_000 for node in nodes)
    assert await listing.count(most=100) == 100
    assert sum(count for _, count in (await listing.facets(most=100))["source"]) == 200


async def plan_of(
    pool: Pool, listing: DeadLetterListing, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Awaitable[Any]]
) -> "Sequence[Any]":
    """Returns the executed plan of the first statement."""
    asked: list[tuple[str, tuple[Any, ...]]] = []

    async def note(doing: str, statement: str, *arguments: Any) -> Sequence[Any]:
        asked.append((statement, arguments))
        return [[0]] if "count(*) from" in statement.replace("\n", " ")[:30] else []

    with monkeypatch.context() as patched:
        patched.setattr(listing, "_fetch", note)
        await ask()
    statement, arguments = asked[0]
    async with pool.acquire() as connection, connection.transaction():
        # Letters as small as these are read as fast without an index.
        await connection.execute("set local enable_seqscan = off")
        return await explained(connection, statement, *arguments)


async def rows_read(
    pool: Pool, listing: DeadLetterListing, monkeypatch: pytest.MonkeyPatch, filter_: DeadLetterFilter, **options: Any
) -> int:
    """Counts the rows that a list reads."""
    asked: list[tuple[str, tuple[Any, ...]]] = []

    async def note(doing: str, statement: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        asked.append((statement, arguments))
        return []

    with monkeypatch.context() as patched:
        patched.setattr(listing, "_fetch", note)
        await listing.list(filter_, **options)
    [(statement, arguments)] = asked
    async with pool.acquire() as connection:
        nodes = await explained(connection, statement, *arguments)
    scans = [node for node in nodes if "Scan" in node["Node Type"] and "Subquery" not in node["Node Type"]]
    return sum(int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]) for node in scans)
