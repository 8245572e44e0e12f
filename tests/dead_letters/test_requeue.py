"""Requeue, discard, restore and purge of dead letters and parked rows, at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from outbox.dead_letters import ORIGINAL_ROUTING, DeadLetterFilter, DeadLetters, ItemOutcome, ToQueue
from outbox.dead_letters.actions import Action, Options
from outbox.dead_letters.changes import Changes, Planner, Request
from outbox.dead_letters.reader import DeadLetterListing
from outbox.errors import ConfigurationError
from outbox.postgres.pool import Pool
from outbox.postgres.queries import TableName
from tests.dead_letters.repairs import DONE, QUEUE, add_dead_letters, at_once, decoded, letters, outbox, park, statuses
from tests.support import eventually

SKIPPED, REFUSED, NOT_FOUND = ItemOutcome.SKIPPED, ItemOutcome.REFUSED, ItemOutcome.NOT_FOUND


@pytest.fixture
async def dead_letters(database: str) -> AsyncIterator[DeadLetters]:
    """The dead letters of the test's database, where PostgreSQL is the broker."""
    async with DeadLetters(database) as opened:
        yield opened


async def test_a_requeued_letter_is_in_the_outbox_for_its_queue_with_its_ids(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool, headers='{"tenant": "north"}', ordering_key="order-7", hlc=17, requeue_count=2)
    assert at_once(await dead_letters.requeue(id_, by="ada", reason="fixed")) == {id_: DONE}
    [row] = await outbox(pool)
    assert decoded(row["tracking_ids"]) == ["root", "m1"]
    assert (row["routing_key"], row["body"], row["content_type"]) == ("order.placed", b'{"id": 7}', "application/json")
    assert (row["target_queue"], row["ordering_key"], row["hlc"], row["requeue_count"]) == (QUEUE, "order-7", 17, 3)
    assert decoded(row["headers"]) == {"tenant": "north"}
    [letter] = await letters(pool)
    assert (letter["status"], letter["resolved_by"], letter["resolution"]) == ("requeued", "ada", "fixed")
    assert letter["resolved_at"] is not None


async def test_each_id_is_answered_in_the_order_in_which_it_was_given(pool: Pool, dead_letters: DeadLetters) -> None:
    first, second, third = await add_dead_letters(pool, 3)
    await dead_letters.requeue(second)
    await dead_letters.discard(third)
    answer = await dead_letters.requeue([third, "999", first, second, "outbox-1", "nonsense"])
    assert list(at_once(answer).items()) == [
        (third, (SKIPPED, "already discarded")),
        ("999", (NOT_FOUND, "no such dead letter: it was purged or sent, or never existed")),
        (first, DONE),
        (second, (SKIPPED, "already requeued")),
        ("outbox-1", (SKIPPED, "already requeued")),
        ("nonsense", (NOT_FOUND, "no such dead letter: it was purged or sent, or never existed")),
    ]


async def test_an_id_in_another_notation_selects_no_letter(pool: Pool, dead_letters: DeadLetters) -> None:
    [letter], parked = await add_dead_letters(pool), await park(pool)
    answer = await dead_letters.discard([f"0{letter}", parked.replace("-", "-0")])
    assert [outcome for outcome, _ in at_once(answer).values()] == [NOT_FOUND, NOT_FOUND]
    assert await statuses(pool) == ["open"]
    assert len(await outbox(pool)) == 1


async def test_two_requeues_of_one_letter_at_once_send_it_once(database: str, pool: Pool) -> None:
    ids = await add_dead_letters(pool, 20)
    async with DeadLetters(database) as one, DeadLetters(database) as other:
        answers = await asyncio.gather(one.requeue(ids), other.requeue(list(reversed(ids))))
    outcomes = [at_once(answer) for answer in answers]
    assert all(sorted(outcome[id_][0] for outcome in outcomes) == ["done", "skipped"] for id_ in ids)
    assert len(await outbox(pool)) == 20


async def test_letters_of_one_ordering_key_are_sent_in_their_original_order(pool: Pool, dead_letters: DeadLetters) -> None:
    ids = await add_dead_letters(pool, 30, ordering_key="order-7")
    await dead_letters.requeue(list(reversed(ids)))
    assert [row["message_id"] for row in await outbox(pool)] == [f"m{number}" for number in range(1, 31)]


async def test_a_requeue_goes_by_routing_key_or_to_another_queue_on_request(pool: Pool, dead_letters: DeadLetters) -> None:
    first, second, third = await add_dead_letters(pool, 3)
    await add_dead_letters(pool, queue="elsewhere")
    await dead_letters.requeue(first, destination=ORIGINAL_ROUTING)
    await dead_letters.requeue(second, destination=ToQueue("elsewhere"))
    answer = await dead_letters.requeue(third, destination=ToQueue("nowhere"))
    assert at_once(answer) == {third: (REFUSED, "the queue nowhere does not exist in PostgreSQL")}
    assert [row["target_queue"] for row in await outbox(pool)] == [None, "elsewhere"]


async def test_a_letter_whose_queue_is_gone_is_refused_and_stays(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool, queue="gone", subscribed=False)
    assert at_once(await dead_letters.requeue(id_, force=True)) == {
        id_: (REFUSED, "the queue gone does not exist in PostgreSQL")
    }
    assert await statuses(pool) == ["open"]
    assert at_once(await dead_letters.requeue(id_, destination=ORIGINAL_ROUTING)) == {id_: DONE}


async def test_a_message_older_than_the_deduplication_window_is_refused_unless_forced(database: str, pool: Pool) -> None:
    old, young = await add_dead_letters(pool, 2)
    await pool.execute("update outbox_dead_letter set created_at = now() - interval '8 days' where id = $1", int(old))
    async with DeadLetters(database, inbox_retention=timedelta(days=7)) as dead_letters:
        outcomes = at_once(await dead_letters.requeue([old, young]))
        assert outcomes[young] == DONE
        outcome, reason = outcomes[old]
        assert outcome is REFUSED
        assert reason.startswith("older than the deduplication window")
        assert at_once(await dead_letters.requeue(old, force=True)) == {old: DONE}


async def test_a_message_without_an_id_gets_one_that_its_letter_keeps(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    await pool.execute("update outbox_dead_letter set message_id = null, tracking_ids = '[]'")
    await dead_letters.requeue(id_)
    [letter], [row] = await letters(pool), await outbox(pool)
    assert letter["message_id"] == row["message_id"] is not None


@pytest.mark.parametrize(("correlation_id", "kept"), [("root", False), ("c1", True)], ids=["of its chain", "of its sender"])
async def test_a_requeued_message_keeps_a_correlation_id_that_the_relay_would_not_set(
    pool: Pool, dead_letters: DeadLetters, correlation_id: str, kept: bool
) -> None:
    [id_] = await add_dead_letters(pool, properties=json.dumps({"correlation_id": correlation_id}))
    await dead_letters.requeue(id_)
    [row] = await outbox(pool)
    kept_properties = {"x-outbox-amqp": {"properties": {"correlation_id": "c1"}}}
    assert (json.loads(row["headers"]) if row["headers"] else None) == (kept_properties if kept else None)


async def test_requeueing_is_written_to_the_history_unless_that_is_off(database: str, pool: Pool) -> None:
    first, second = await add_dead_letters(pool, 2)
    async with DeadLetters(database) as dead_letters, DeadLetters(database, history=False) as silent:
        await dead_letters.requeue(first, by="ada")
        await silent.requeue(second)
    [fact] = await pool.fetch("select fact, message_id, root_id, parent_id, queue, component from outbox_history")
    assert tuple(fact) == ("requeued", "m1", "root", "root", QUEUE, "ada")


# --- parked rows -----------------------------------------------------------------------------------------------------------


async def test_a_parked_row_is_requeued_in_its_place(pool: Pool, dead_letters: DeadLetters) -> None:
    id_ = await park(pool, ordering_key="order-7")
    assert at_once(await dead_letters.requeue(id_)) == {id_: DONE}
    [row] = await outbox(pool)
    assert f"outbox-{row['id']}" == id_
    assert (row["failed_at"], row["attempts"], row["last_error"], row["requeue_count"]) == (None, 0, None, 1)
    assert at_once(await dead_letters.requeue(id_)) == {id_: (SKIPPED, "already requeued")}


async def test_requeueing_a_parked_row_rings(database: str, pool: Pool, dead_letters: DeadLetters) -> None:
    from outbox.postgres.doorbell import PostgresDoorbell, bell_of
    from outbox.postgres.pool import connect_to
    from outbox.postgres.queries import TableName
    from tests.contract.harness import Recorder

    id_ = await park(pool)
    bell = PostgresDoorbell(
        connect_to(database, application_name="tests"),
        bell_of(TableName("outbox_table")),
        observer=(recorder := Recorder()),
        poll_interval=timedelta(hours=1),
    )
    task = asyncio.create_task(bell.run())
    try:
        await eventually(lambda: recorder.events)
        async with bell.asleep() as nap:
            await dead_letters.requeue(id_)
            async with asyncio.timeout(30):
                await nap.wait(timedelta(hours=1))
    finally:
        task.cancel()


async def test_a_discarded_parked_row_leaves_the_outbox_and_can_be_restored(pool: Pool, dead_letters: DeadLetters) -> None:
    id_ = await park(pool, ordering_key="order-7", headers='{"a": 1}', last_error="outbox.errors.Nacked: too large")
    assert at_once(await dead_letters.discard(id_, by="ada", reason="spam")) == {id_: DONE}
    assert await outbox(pool) == []
    [letter] = await letters(pool)
    assert (letter["source"], letter["status"], letter["resolved_by"], letter["resolution"]) == (
        "relay",
        "discarded",
        "ada",
        "spam",
    )
    assert (letter["exception_type"], letter["exception_message"]) == ("outbox.errors.Nacked", "too large")
    assert at_once(await dead_letters.restore(str(letter["id"]))) == {str(letter["id"]): DONE}
    assert at_once(await dead_letters.requeue(str(letter["id"]))) == {str(letter["id"]): DONE}
    [row] = await outbox(pool)
    assert (row["target_queue"], row["ordering_key"], decoded(row["headers"])) == (None, "order-7", {"a": 1})
    assert row["message_id"] == letter["message_id"]


async def test_messages_that_waited_for_a_parked_row_continue_when_it_is_discarded(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    for key in ("order-7", "order-8"):
        await park(pool, ordering_key=key)
        for _ in range(2):
            await pool.execute(
                "insert into outbox_table (routing_key, body, ordering_key, send_after, last_error) "
                "values ('a', '', $1, 'infinity', 'blocked')",
                key,
            )
    await dead_letters.discard("outbox-1")
    due = await pool.fetch("select id from outbox_table where send_after <= now() and failed_at is null")
    assert [row["id"] for row in due] == [2]


# --- discard, restore, purge -------------------------------------------------------------------------------------------------


async def test_restore_undoes_discard(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    assert at_once(await dead_letters.discard(id_, by="ada", reason="test data")) == {id_: DONE}
    assert await statuses(pool) == ["discarded"]
    assert at_once(await dead_letters.discard(id_)) == {id_: (SKIPPED, "already discarded")}
    assert at_once(await dead_letters.restore(id_)) == {id_: DONE}
    assert await statuses(pool) == ["open"]
    assert at_once(await dead_letters.restore(id_)) == {id_: (SKIPPED, "open already")}


async def test_only_discarded_letters_are_purged_unless_forced(pool: Pool, dead_letters: DeadLetters) -> None:
    first, second = await add_dead_letters(pool, 2)
    parked = await park(pool)
    await dead_letters.discard(first)
    refusal = (REFUSED, "it is open: only what was discarded is purged, unless you force it")
    assert at_once(await dead_letters.purge([first, second, parked])) == {first: DONE, second: refusal, parked: refusal}
    assert at_once(await dead_letters.purge([second, parked], force=True)) == {second: DONE, parked: DONE}
    assert await letters(pool) == []
    assert await outbox(pool) == []


@pytest.mark.parametrize("selector", [[], [17], [""][:0]])
async def test_an_invalid_selector_is_refused(dead_letters: DeadLetters, selector: object) -> None:
    with pytest.raises(ConfigurationError, match="by their ids"):
        await dead_letters.requeue(selector)  # type: ignore[arg-type]


# --- queues in the database while the broker is another one ----------------------------------------------------------------


async def test_a_letter_of_a_stored_queue_goes_back_to_its_queue_without_the_broker(pool: Pool) -> None:
    async def has_queue(queue: str) -> bool:
        return queue == "mail"

    await pool.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('kafka', 'audit', 'audit.#')")
    [stored] = await add_dead_letters(pool, queue="audit", exchange="kafka", ordering_key="k", subscribed=False)
    [elsewhere] = await add_dead_letters(pool, queue="gone", exchange="kafka", subscribed=False, fingerprint="f2")
    [unbound] = await add_dead_letters(pool, queue="audit", exchange="outbox", subscribed=False, fingerprint="f3", attempt=6)
    table = TableName("outbox_table")
    changes = Changes(pool, table, has_queue, exchange_name="outbox")
    request = Request(action=Action.REQUEUE, options=Options())
    planner = Planner(pool, table, DeadLetterListing(pool, table), has_queue, exchange_name="outbox")
    plan = await planner.plan(request, DeadLetterFilter(), None)
    assert plan.warnings[:1] == ["1 will be refused: the queue gone does not exist"]

    repaired = await changes.execute(request, [stored, elsewhere, unbound])
    assert [item.outcome for item in repaired.items] == [ItemOutcome.DONE, ItemOutcome.REFUSED, ItemOutcome.REFUSED]
    [delivery] = await pool.fetch("select * from outbox_delivery")
    assert (delivery["exchange"], delivery["queue"], delivery["message_id"]) == ("kafka", "audit", "m1")
    assert (delivery["attempt"], delivery["requeue_count"], delivery["ordering_key"]) == (1, 1, "k")
    assert await outbox(pool) == []
    [again] = (await changes.execute(request, [stored])).items
    assert again.outcome is ItemOutcome.SKIPPED
