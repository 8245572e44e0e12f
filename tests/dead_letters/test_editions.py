"""Requeueing with an edited body or headers: the old ones are kept, and concurrent edits are refused."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from outbox.dead_letters import DeadLetterFilter, DeadLetters, Edit, ItemOutcome
from outbox.dead_letters.reader import DeadLetterListing
from outbox.errors import ConfigurationError, EncodingError
from outbox.postgres.pool import Pool
from tests.dead_letters.repairs import DONE, add_dead_letters, at_once, decoded, letters, outbox, park, statuses

REFUSED, SKIPPED = ItemOutcome.REFUSED, ItemOutcome.SKIPPED
FIXED = {"id": 7, "total": 12.5}


@pytest.fixture
async def dead_letters(database: str) -> AsyncIterator[DeadLetters]:
    """The dead letters of the test's database, where PostgreSQL is the broker."""
    async with DeadLetters(database) as opened:
        yield opened


async def test_an_edited_body_is_sent_and_the_old_one_kept(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool, headers='{"tenant": "north"}')
    assert at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body=FIXED), by="ada")) == {id_: DONE}
    [row] = await outbox(pool)
    assert (decoded(row["body"]), row["content_type"], decoded(row["headers"])) == (
        FIXED,
        "application/json",
        {"tenant": "north"},
    )
    assert row["message_id"] == "m1"
    detail = await dead_letters.get(id_)
    assert detail is not None
    assert (detail.letter.version, decoded(detail.body.decode())) == (2, FIXED)
    [edition] = detail.editions
    assert (edition.version, edition.body, edition.content_type, edition.headers, edition.replaced_by) == (
        1,
        b'{"id": 7}',
        "application/json",
        {"tenant": "north"},
        "ada",
    )


async def test_an_edited_letter_is_found_by_its_new_words(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    await dead_letters.requeue(id_, edit=Edit(version=1, body={"city": "Marseille", "password": "hunter2"}))
    [found] = await dead_letters.list(DeadLetterFilter(q="marseille"))
    assert found.preview == '{"city": "Marseille", "password": "***"}'
    assert await dead_letters.list(DeadLetterFilter(q="hunter2")) == []


async def test_a_body_of_bytes_keeps_the_content_type(pool: Pool, dead_letters: DeadLetters) -> None:
    json, binary = await add_dead_letters(pool, 2)
    await pool.execute("update outbox_dead_letter set content_type = null where id = $1", int(binary))
    for id_ in (json, binary):
        await dead_letters.requeue(id_, edit=Edit(version=1, body=b"{}"))
    assert [row["content_type"] for row in await outbox(pool)] == ["application/json", "application/octet-stream"]


@pytest.mark.parametrize(("headers", "kept"), [({"tenant": "south"}, {"tenant": "south"}), ({}, None)])
async def test_edited_headers_replace_all_headers(
    pool: Pool, dead_letters: DeadLetters, headers: dict[str, str], kept: object
) -> None:
    [id_] = await add_dead_letters(pool, headers='{"tenant": "north", "trace": "on"}')
    await dead_letters.requeue(id_, edit=Edit(version=1, headers=headers))
    [row] = await outbox(pool)
    assert (row["body"], decoded(row["headers"])) == (b'{"id": 7}', kept)


async def test_an_edit_of_another_version_than_the_present_one_is_refused(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    await dead_letters.requeue(id_, edit=Edit(version=1, body=FIXED))
    await pool.execute("update outbox_dead_letter set status = 'open'")
    answer = at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body={})))
    assert answer == {id_: (REFUSED, "the edit is for version 1, but the current version is 2: reload it and edit again")}
    assert len(await outbox(pool)) == 1
    await dead_letters.requeue(id_, edit=Edit(version=2, body={}))
    detail = await dead_letters.get(id_)
    assert detail is not None
    assert [edition.version for edition in detail.editions] == [1, 2]


async def test_an_edit_whose_requeue_is_refused_is_rolled_back(pool: Pool, dead_letters: DeadLetters) -> None:
    gone, *_ = await add_dead_letters(pool, queue="gone", subscribed=False)
    parked = await park(pool, target_queue="gone")
    for id_ in (gone, parked):
        answer = at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body=FIXED)))
        assert answer == {id_: (REFUSED, "the queue gone does not exist in PostgreSQL")}
    [letter], [row] = await letters(pool), await outbox(pool)
    assert (letter["version"], letter["body"], row["body"]) == (1, b'{"id": 7}', b"{}")
    assert await pool.fetchval("select count(*) from outbox_dead_letter_edition") == 0


async def test_only_open_dead_letters_are_edited(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    await dead_letters.discard(id_)
    assert at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body={}))) == {id_: (SKIPPED, "already discarded")}
    for missing in ("99", "outbox-99", "nonsense"):
        assert at_once(await dead_letters.requeue(missing, edit=Edit(version=1, body={})))[missing][0] == "not found"
    assert await pool.fetchval("select count(*) from outbox_dead_letter_edition") == 0


async def test_an_edited_parked_row_keeps_its_place_and_leaves_a_letter_with_what_it_was(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    id_ = await park(pool, body=b'"far too large"', ordering_key="order-7")
    assert at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body="shorter"), by="ada")) == {id_: DONE}
    [row] = await outbox(pool)
    assert (f"outbox-{row['id']}", row["body"], row["failed_at"], row["requeue_count"]) == (id_, b'"shorter"', None, 1)
    assert await statuses(pool) == ["requeued"]
    [letter] = await letters(pool)
    detail = await dead_letters.get(str(letter["id"]))
    assert detail is not None
    assert (detail.letter.message_id, detail.body, detail.letter.source) == (row["message_id"], b'"shorter"', "relay")
    assert [edition.body for edition in detail.editions] == [b'"far too large"']


async def test_an_edit_of_a_parked_row_that_was_edited_and_parked_again_is_refused(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    id_ = await park(pool, body=b'"far too large"')
    read = await dead_letters.get(id_)
    assert read is not None
    edit = Edit(version=read.letter.version, body="shorter")
    assert at_once(await dead_letters.requeue(id_, edit=edit)) == {id_: DONE}
    await pool.execute("update outbox_table set failed_at = now(), attempts = 5, last_error = 'RefusedError: too large'")
    late = replace(edit, body="another")
    assert at_once(await dead_letters.requeue(id_, edit=late)) == {
        id_: (REFUSED, "the edit is for version 1, but the current version is 2: reload it and edit again")
    }
    [row] = await outbox(pool)
    assert row["body"] == b'"shorter"'
    assert at_once(await dead_letters.requeue(id_, edit=replace(late, version=2))) == {id_: DONE}


@pytest.mark.parametrize("headers", [{"x-outbox-attempt": "1"}, {"X-Outbox-Tracking-Ids": "[]"}])
async def test_reserved_headers_are_refused(pool: Pool, dead_letters: DeadLetters, headers: dict[str, str]) -> None:
    [id_] = await add_dead_letters(pool)
    with pytest.raises(EncodingError, match="reserved"):
        await dead_letters.requeue(id_, edit=Edit(version=1, headers=headers))
    assert await statuses(pool) == ["open"]
    assert await outbox(pool) == []


async def test_an_edit_is_for_one_id(pool: Pool, dead_letters: DeadLetters) -> None:
    ids = await add_dead_letters(pool, 2)
    for selector in (ids, DeadLetterFilter()):
        with pytest.raises(ConfigurationError, match="an edit needs exactly one id"):
            await dead_letters.requeue(selector, edit=Edit(version=1, body={}))
    with pytest.raises(ConfigurationError, match="cannot be combined with rate"):
        await dead_letters.requeue(ids[0], edit=Edit(version=1, body={}), rate=1)
    with pytest.raises(ConfigurationError, match="the body, the headers, or both"):
        Edit(version=1)


async def test_an_edit_that_would_equal_another_letter_is_refused(pool: Pool, dead_letters: DeadLetters) -> None:
    [first], _ = await add_dead_letters(pool), await add_dead_letters(pool, body=b'"other"')
    answer = at_once(await dead_letters.requeue(first, edit=Edit(version=1, body=b'"other"')))
    assert answer == {first: (REFUSED, "with this edit it equals another dead letter of the same message: requeue that one")}
    assert await statuses(pool) == ["open", "open"]


async def test_an_edit_of_a_parked_row_that_would_be_another_letter_of_its_message_is_refused(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    parked = await park(pool, tracking_ids='["m1"]', attempts=5)
    await add_dead_letters(pool, queue="", subscribed=False, attempt=5, body=b'"other"')
    answer = at_once(await dead_letters.requeue(parked, edit=Edit(version=1, body=b'"other"')))
    assert answer == {parked: (REFUSED, "with this edit it equals another dead letter of the same message: requeue that one")}
    [row] = await outbox(pool)
    assert (row["body"], row["failed_at"] is None, await statuses(pool)) == (b"{}", False, ["open"])


async def test_a_parked_row_that_cannot_leave_a_letter_behind_is_not_sent_without_its_edit(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    first, twin = await park(pool, tracking_ids='["m1"]'), await park(pool, tracking_ids='["m1"]')
    await dead_letters.discard(first)
    answer = await dead_letters.requeue(twin, edit=Edit(version=1, body={"id": 8}))
    assert at_once(answer)[twin][0] is ItemOutcome.REFUSED
    [row] = await outbox(pool)
    assert row["failed_at"] is not None


async def test_a_letter_that_is_restored_while_its_new_body_is_prepared_is_not_sent_with_the_old_one(
    pool: Pool, dead_letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    [id_] = await add_dead_letters(pool)
    await dead_letters.discard(id_)
    read = DeadLetterListing.get

    async def read_and_restored(*arguments: Any, **options: Any) -> Any:
        found = await read(*arguments, **options)
        await pool.execute("update outbox_dead_letter set status = 'open'")
        return found

    monkeypatch.setattr(DeadLetterListing, "get", read_and_restored)
    answer = at_once(await dead_letters.requeue(id_, edit=Edit(version=1, body=FIXED)))
    assert answer == {id_: (REFUSED, "the dead letter changed while its new body was prepared: reload it and edit again")}
    assert (await outbox(pool), await statuses(pool)) == ([], ["open"])
