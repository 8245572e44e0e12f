"""Operations: many dead letters in batches, which survive a crash of the process."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from outbox.dead_letters import (
    ORIGINAL_ROUTING,
    Canary,
    DeadLetterFilter,
    DeadLetters,
    Item,
    ItemOutcome,
    Operation,
    OperationsRunner,
    OperationState,
    Result,
    Results,
    ToQueue,
)
from outbox.dead_letters.changes import subscribed_queues
from outbox.engine.lifecycle import Stopping
from outbox.errors import BrokerUnavailableError, ConfigurationError, RefusedError
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool
from outbox.postgres.queries import TableName
from tests.dead_letters.failed_messages import dead
from tests.dead_letters.repairs import QUEUE, add_dead_letters, add_fact, at_once, operation, outbox, park, statuses
from tests.support import eventually
from tests.support.processes import running

DONE, SKIPPED, FAILED_AGAIN, PENDING = ItemOutcome.DONE, ItemOutcome.SKIPPED, ItemOutcome.FAILED_AGAIN, ItemOutcome.PENDING
REFUSED = ItemOutcome.REFUSED
TABLE = TableName("outbox_table")
ALL = DeadLetterFilter()


@pytest.fixture
async def dead_letters(database: str) -> AsyncIterator[DeadLetters]:
    """The dead letters of the test's database, where PostgreSQL is the broker."""
    async with DeadLetters(database) as opened:
        yield opened


async def finish(dead_letters: DeadLetters, number: int) -> Operation:
    """Runs batches until nothing is due."""
    runner = await dead_letters.runner()
    while await runner.run_once(number):
        pass
    return await read(dead_letters, number)


async def read(dead_letters: DeadLetters, number: int) -> Operation:
    """Reads an operation that exists."""
    found = await dead_letters.operation(number)
    assert found is not None
    return found


async def come_back(pool: Pool, count: int) -> None:
    """Dead-letters the first `count` requeued messages again, as an archiver or a queue in PostgreSQL does."""
    await pool.execute(
        "with failed as ("
        " update outbox_dead_letter set status = 'open', deaths = deaths + 1, requeue_count = requeue_count + 1"
        " where id in (select id from outbox_dead_letter where status = 'requeued' order by id limit $1) returning id) "
        "update outbox_operation_item set outcome = 'died again', check_at = now() "
        "from failed where letter = failed.id::text and outcome = 'done'",
        count,
    )


async def test_a_group_is_requeued_by_an_operation_whose_letters_are_fixed(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 1_200, fingerprint="f1")
    await add_dead_letters(pool, 3, fingerprint="f2", queue="other")
    created = operation(await dead_letters.requeue(DeadLetterFilter(group_id="f1"), by="ada", reason="fixed"))
    assert (created.state, created.total, created.pending) == (OperationState.RUNNING, 1_200, 1_200)
    assert (created.selector, created.requested_by, created.reason) == (
        {"filter": {"group_id": "f1", "status": "open"}},
        "ada",
        "fixed",
    )
    await add_dead_letters(pool, 5, fingerprint="f1", queue="late")
    ended = await finish(dead_letters, created.id)
    assert (ended.state, ended.counts) == (OperationState.FINISHED, {DONE: 1_200})
    assert ended.finished_at is not None
    assert len(await outbox(pool)) == 1_200
    assert (await statuses(pool)).count("requeued") == 1_200


async def test_more_than_a_hundred_ids_become_an_operation(pool: Pool, dead_letters: DeadLetters) -> None:
    ids = await add_dead_letters(pool, 101)
    assert len(at_once(await dead_letters.discard(ids[:100]))) == 100
    ended = await finish(dead_letters, operation(await dead_letters.discard([*ids, "9999"])).id)
    assert ended.counts == {DONE: 1, SKIPPED: 100, ItemOutcome.NOT_FOUND: 1}
    items = await dead_letters.operation_items(ended.id, outcome=DONE)
    assert [item.item for item in items] == [Item(ids[100], DONE)]


async def test_parked_rows_are_part_of_what_a_filter_means(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_], parked = await add_dead_letters(pool), await park(pool)
    created = operation(await dead_letters.requeue(ALL))
    await finish(dead_letters, created.id)
    items = await dead_letters.operation_items(created.id)
    assert [item.item for item in items] == [Item(id_, DONE), Item(parked, DONE)]
    assert [row["failed_at"] for row in await outbox(pool)] == [None, None]


async def test_a_filter_without_a_status_means_those_that_the_action_is_for(pool: Pool, dead_letters: DeadLetters) -> None:
    first, *_ = await add_dead_letters(pool, 3)
    await dead_letters.discard(first)
    assert operation(await dead_letters.discard(ALL, max_items=1)).total == 1
    restored = operation(await dead_letters.restore(ALL))
    assert [item.item.id for item in await dead_letters.operation_items(restored.id)] == [first]
    assert operation(await dead_letters.purge(DeadLetterFilter(queue="nowhere"))).state is OperationState.FINISHED


async def test_a_letter_belongs_to_one_operation_at_a_time(pool: Pool, dead_letters: DeadLetters) -> None:
    ids = await add_dead_letters(pool, 120)
    first = operation(await dead_letters.requeue(ids[:110]))
    second = operation(await dead_letters.discard(ids[100:] + ids[:90]))
    assert second.counts == {SKIPPED: 100, PENDING: 10}
    assert (await dead_letters.operation_items(second.id, outcome=SKIPPED, limit=1))[0].item.reason == "in operation 1"
    assert at_once(await dead_letters.requeue(ids[0])) == {ids[0]: (SKIPPED, "in operation 1")}
    await dead_letters.cancel(first.id)
    assert at_once(await dead_letters.requeue(ids[0])) == {ids[0]: (DONE, "")}


@pytest.mark.parametrize("state", ["P0001", "23514"])
async def test_a_dead_letter_that_the_database_refuses_to_change_is_refused_and_its_neighbours_are_not(
    pool: Pool, dead_letters: DeadLetters, state: str
) -> None:
    ids = await add_dead_letters(pool, 7)
    await pool.execute(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin if new.tracking_ids ->> -1 in ('m2', 'm5') then "
        f"raise using errcode = '{state}', message = 'not this one'; end if; return new; end $$; "
        "create trigger refuse before insert on outbox_table for each row execute function refuse()"
    )
    assert at_once(await dead_letters.requeue(ids[:2])) == {ids[0]: (DONE, ""), ids[1]: (REFUSED, ANY)}
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    assert (ended.state, ended.counts) == (OperationState.FINISHED, {DONE: 4, REFUSED: 2})
    refused = [each.item for each in await dead_letters.operation_items(ended.id) if each.item.outcome is REFUSED]
    assert [item.id for item in refused] == [ids[1], ids[4]]
    assert all(item.reason.startswith("the database refuses it: ") and "not this one" in item.reason for item in refused)
    assert sorted(row["message_id"] for row in await outbox(pool)) == ["m1", "m3", "m4", "m6", "m7"]
    assert await statuses(pool) == ["requeued", "open", "requeued", "requeued", "open", "requeued", "requeued"]


async def test_operations_created_at_once_share_no_letter(database: str, pool: Pool) -> None:
    await add_dead_letters(pool, 300)
    async with DeadLetters(database) as one, DeadLetters(database) as other:
        answers = await asyncio.gather(one.requeue(ALL), other.discard(ALL), one.requeue(ALL), other.discard(ALL))
    assert sorted(operation(answer).pending for answer in answers) == [0, 0, 0, 300]


async def test_another_process_can_pause_resume_and_cancel_an_operation(database: str, pool: Pool) -> None:
    await add_dead_letters(pool, 40)
    runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=10)
    async with DeadLetters(database) as asking, DeadLetters(database) as other:
        number = operation(await asking.requeue(ALL)).id
        assert await runner.run_once() == 10
        assert (await other.pause(number)).state is OperationState.PAUSED
        assert await runner.run_once() == 0
        with pytest.raises(RefusedError, match="operation 1 is paused and cannot be paused"):
            await other.pause(number)
        assert (await other.resume(number)).state is OperationState.RUNNING
        assert await runner.run_once() == 10
        cancelled = await other.cancel(number)
        assert (cancelled.state, cancelled.counts) == (OperationState.CANCELLED, {DONE: 20, SKIPPED: 20})
        assert await runner.run_once() == 0
        with pytest.raises(RefusedError, match="operation 1 is cancelled and cannot be resumed"):
            await other.resume(number)
        with pytest.raises(RefusedError, match="there is no operation 7"):
            await other.cancel(7)
    assert len(await outbox(pool)) == 20


async def test_a_rate_spreads_it_over_time(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 12)
    number = operation(await dead_letters.requeue(ALL, rate=5)).id
    runner = await dead_letters.runner()
    assert await runner.run_once(number) == 5, "no more than a second of it at once"
    while (await read(dead_letters, number)).pending:
        await eventually(lambda: runner.run_once(number))
    ended = await read(dead_letters, number)
    assert ended.state is OperationState.FINISHED
    assert ended.finished_at is not None
    assert ended.finished_at - ended.created_at >= timedelta(seconds=1.9)


async def test_a_canary_goes_first_and_the_rest_follows_when_all_of_it_was_handled(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    await add_dead_letters(pool, 20)
    number = operation(await dead_letters.requeue(ALL, canary=Canary(3))).id
    waiting = await finish(dead_letters, number)
    assert (waiting.state, waiting.counts) == (OperationState.RUNNING, {DONE: 3, PENDING: 17})
    assert waiting.canary_since is not None
    assert waiting.canary_until == waiting.canary_since + timedelta(minutes=10)
    await add_fact(pool, "processed", "m1", "m2")
    assert (await finish(dead_letters, number)).results == Results(sent=3, waiting=1, handled=2)
    await add_fact(pool, "duplicate", "m3")
    ended = await finish(dead_letters, number)
    assert (ended.state, ended.counts, ended.results) == (
        OperationState.FINISHED,
        {DONE: 20},
        Results(sent=20, waiting=17, handled=3),
    )
    assert ended.canary_until is not None
    assert ended.canary_until < waiting.canary_until


async def test_a_canary_that_is_not_known_to_be_handled_in_time_stops(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 5)
    number = operation(await dead_letters.requeue(ALL, canary=Canary(2, timedelta(milliseconds=50)))).id
    runner = await dead_letters.runner()
    await runner.run_once(number)
    await add_fact(pool, "processed", "m1")
    await eventually(lambda: runner.run_once(number))
    ended = await read(dead_letters, number)
    assert ended.state is OperationState.STOPPED
    assert (ended.stopped_because or "").startswith("the results of 1 of the first 2 are not known after 0.05 s: no worker has")


async def test_a_canary_with_a_stop_ratio_waits_for_the_last_attempts(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 5)
    number = operation(await dead_letters.requeue(ALL, canary=Canary(2), stop_ratio=0.5)).id
    await finish(dead_letters, number)
    await add_fact(pool, "processed", "m1")
    await add_fact(pool, "retried", "m2", error="no such order")
    waiting = await finish(dead_letters, number)
    assert (waiting.state, waiting.results) == (
        OperationState.RUNNING,
        Results(sent=2, handled=1, retrying=1, failed=1),
    )
    await add_fact(pool, "processed", "m2")
    ended = await finish(dead_letters, number)
    assert (ended.state, ended.results) == (OperationState.FINISHED, Results(sent=5, waiting=3, handled=2, failed=1))


@pytest.mark.parametrize(
    ("returned", "stop_ratio", "state"),
    [
        (1, None, OperationState.STOPPED),
        (1, 0.5, OperationState.FINISHED),
        (3, 0.5, OperationState.STOPPED),
        (4, 1, OperationState.FINISHED),
    ],
)
async def test_an_operation_whose_canary_failed_again_stops(
    pool: Pool, dead_letters: DeadLetters, returned: int, stop_ratio: float | None, state: OperationState
) -> None:
    await add_dead_letters(pool, 9)
    number = operation(await dead_letters.requeue(ALL, canary=Canary(4), stop_ratio=stop_ratio)).id
    runner = await dead_letters.runner()
    await runner.run_once(number)
    await come_back(pool, returned)
    await add_fact(pool, "processed", *["m2", "m3", "m4"][returned - 1 :])
    await runner.run_once(number)
    ended = await read(dead_letters, number)
    assert ended.state is state
    if state is OperationState.STOPPED:
        assert ended.stopped_because == f"{returned} of the first 4 failed"
        assert ended.counts == {DONE: 4 - returned, FAILED_AGAIN: returned, SKIPPED: 5}


async def test_an_operation_stops_above_its_stop_ratio(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 100)
    number = operation(await dead_letters.requeue(ALL, stop_ratio=0.1)).id
    runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=20)
    await runner.run_once()
    await come_back(pool, 2)
    await runner.run_once()
    await come_back(pool, 3)
    await runner.run_once()
    ended = await read(dead_letters, number)
    assert (ended.state, ended.stopped_because) == (OperationState.STOPPED, "5 of 40 failed, more than 10%")
    assert ended.counts == {DONE: 35, FAILED_AGAIN: 5, SKIPPED: 60}


async def test_an_operation_stops_by_default_after_its_canary_too_and_counts_failed_attempts(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    await add_dead_letters(pool, 100)
    number = operation(await dead_letters.requeue(ALL, canary=Canary(10))).id
    runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=20)
    await runner.run_once()
    await add_fact(pool, "processed", *[f"m{n}" for n in range(1, 11)])
    assert await runner.run_once() == 20
    await add_fact(pool, "retried", "m11", error="no such order")
    assert await runner.run_once() == 20
    await add_fact(pool, "retried", "m12", "m13", error="no such order")
    await runner.run_once()
    ended = await read(dead_letters, number)
    assert (ended.state, ended.stopped_because) == (OperationState.STOPPED, "3 of 13 failed, more than 10%")
    assert ended.results == Results(sent=50, waiting=37, retrying=3, handled=10, failed=3)


async def test_a_stop_ratio_of_one_never_stops_an_operation(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 60)
    number = operation(await dead_letters.requeue(ALL, stop_ratio=1)).id
    runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=20)
    await runner.run_once()
    await add_fact(pool, "died", *[f"m{n}" for n in range(1, 21)], error="no such order")
    assert [await runner.run_once(), await runner.run_once()] == [20, 20]
    ended = await read(dead_letters, number)
    assert (ended.state, ended.results) == (
        OperationState.FINISHED,
        Results(sent=60, waiting=40, failed_again=20, failed=20),
    )


async def test_results_are_kept_up_to_date_after_the_end_with_their_reasons(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 5)
    parked = await park(pool)
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    assert (ended.state, ended.results) == (OperationState.FINISHED, Results(sent=6, waiting=6))
    await add_fact(pool, "retried", "m1", "m2", "m3", error="token=abc was refused")
    await add_fact(pool, "processed", "m1")
    await add_fact(pool, "processed", "m5", queue="another")
    await add_fact(pool, "died", "m3", error="no such order")
    await pool.execute(
        "update outbox_table set failed_at = now(), last_error = 'RefusedError: it is too large' where id = $1",
        int(parked.removeprefix("outbox-")),
    )
    found = await read(dead_letters, ended.id)
    assert found.results == Results(sent=6, waiting=2, retrying=1, handled=1, failed_again=2, failed=4)
    assert found.counts == {DONE: 4, FAILED_AGAIN: 2}
    assert [(item.result, item.failed_attempts, item.item.reason) for item in await dead_letters.operation_items(found.id)] == [
        (Result.HANDLED, 1, ""),
        (Result.RETRYING, 1, "ValueError: token=*** was refused"),
        (Result.FAILED_AGAIN, 2, "ValueError: no such order"),
        (Result.WAITING, 0, ""),
        (Result.WAITING, 0, ""),
        (Result.FAILED_AGAIN, 1, "RefusedError: it is too large"),
    ]
    [listed] = await dead_letters.operations()
    assert listed == found


async def test_a_message_for_several_queues_is_handled_when_all_queues_with_facts_have_handled_it(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    await add_dead_letters(pool, 1)
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL, destination=ORIGINAL_ROUTING)).id)
    await add_fact(pool, "processed", "m1", queue="one")
    await add_fact(pool, "retried", "m1", queue="other", error="no such order")
    assert (await read(dead_letters, ended.id)).results == Results(sent=1, retrying=1, failed=1)
    await add_fact(pool, "processed", "m1", queue="other")
    assert (await read(dead_letters, ended.id)).results == Results(sent=1, handled=1, failed=1)
    await PostgresArchive(pool, TABLE).record([dead("m1", queue="third", requeue_count=1)])
    assert (await read(dead_letters, ended.id)).results == Results(sent=1, failed_again=1, failed=1)


async def test_an_inbox_says_what_was_handled_where_there_is_no_history(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 2)
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    await pool.execute("insert into outbox_inbox (queue, message_id) values ($1, 'm1')", QUEUE)
    assert (await read(dead_letters, ended.id)).results == Results(sent=2, waiting=1, handled=1)


async def test_a_result_without_facts_for_a_week_is_unknown(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 2)
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    await pool.execute("update outbox_operation_item set settled_at = now() - interval '8 days' where position = 1")
    assert (await read(dead_letters, ended.id)).results == Results(sent=2, waiting=1, unknown=1)
    assert await pool.fetchval("select count(*) from outbox_operation_item where check_at is not null") == 1


async def test_a_requeue_by_an_earlier_release_is_unknown_and_counted_when_it_fails_again(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    await add_dead_letters(pool, 2)
    ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    await pool.execute("update outbox_operation_item set message_id = null, queue = null, result = null, check_at = null")
    await pool.execute("update outbox_operation set waiting = 0")
    assert (await read(dead_letters, ended.id)).results == Results(sent=2, unknown=2)
    await come_back(pool, 1)
    for _ in range(2):
        found = await read(dead_letters, ended.id)
        assert found.results == Results(sent=2, unknown=1, failed_again=1, failed=1)


async def test_a_read_only_role_sees_the_last_known_results(database: str, pool: Pool) -> None:
    await add_dead_letters(pool, 1)
    async with DeadLetters(database) as dead_letters:
        ended = await finish(dead_letters, operation(await dead_letters.requeue(ALL)).id)
    await add_fact(pool, "processed", "m1")
    async with DeadLetters(
        f"{database}{'&' if '?' in database else '?'}options=-cdefault_transaction_read_only%3Don"
    ) as reader:
        assert (await read(reader, ended.id)).results == Results(sent=1, waiting=1)
    assert (await read(DeadLetters(db_pool=pool), ended.id)).results == Results(sent=1, handled=1)


@pytest.mark.parametrize("destination", [ToQueue("elsewhere"), ORIGINAL_ROUTING])
async def test_a_failure_in_another_queue_than_before_is_failed_again(
    pool: Pool, dead_letters: DeadLetters, destination: object
) -> None:
    await add_dead_letters(pool, 4)
    number = operation(await dead_letters.requeue(ALL, destination=destination, canary=Canary(2))).id  # type: ignore[arg-type]
    await pool.execute("insert into outbox_subscription values ('outbox', 'elsewhere', '#')")
    runner = await dead_letters.runner()
    await runner.run_once(number)
    await PostgresArchive(pool, TABLE).record([dead("m1", queue="elsewhere", requeue_count=1)])
    await eventually(lambda: runner.run_once(number))
    assert (await read(dead_letters, number)).stopped_because == "1 of the first 2 failed"


async def test_a_failure_in_another_queue_after_the_end_is_still_counted(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 3)
    await add_dead_letters(pool, queue="elsewhere", requeue_count=0)
    number = operation(await dead_letters.requeue(DeadLetterFilter(queue=QUEUE), destination=ToQueue("elsewhere"))).id
    await finish(dead_letters, number)
    archive = PostgresArchive(pool, TABLE)
    await archive.record([dead(f"m{n}", queue="elsewhere", requeue_count=1) for n in (1, 2)])
    assert (await read(dead_letters, number)).counts == {DONE: 1, FAILED_AGAIN: 2}


async def test_an_unrelated_failure_in_another_queue_does_not_count_for_an_operation(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    await add_dead_letters(pool, 2)
    await add_dead_letters(pool, 2, queue="other")
    number = operation(await dead_letters.requeue(DeadLetterFilter(queue=QUEUE))).id
    await finish(dead_letters, number)
    await dead_letters.requeue(["3", "4"])
    await PostgresArchive(pool, TABLE).record([dead("m1", queue="other", requeue_count=1)])
    assert (await read(dead_letters, number)).counts == {DONE: 2}


async def test_an_operation_waits_for_a_broker_that_cannot_say_whether_a_queue_is_there(pool: Pool) -> None:
    await add_dead_letters(pool, 3)
    away = True

    async def has_queue(queue: str) -> bool:
        if away:
            raise BrokerUnavailableError("the broker is away")
        return True

    async with DeadLetters(db_pool=pool) as dead_letters:
        number = operation(await dead_letters.requeue(ALL)).id
        runner = OperationsRunner(pool, TABLE, has_queue)
        with pytest.raises(BrokerUnavailableError):
            await runner.run_once()
        assert await runner.run_once() == 0
        away = False
        await pool.execute("update outbox_operation set continue_at = now()")
        assert await runner.run_once() == 3
        assert (await read(dead_letters, number)).state is OperationState.FINISHED


async def test_several_runners_do_each_letter_once(database: str, pool: Pool) -> None:
    await add_dead_letters(pool, 2_000)
    runners = [OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=50) for _ in range(4)]
    async with DeadLetters(database) as dead_letters:
        number = operation(await dead_letters.requeue(ALL)).id

        async def work(runner: OperationsRunner) -> None:
            while (await read(dead_letters, number)).pending:
                await runner.run_once(number)

        await asyncio.gather(*map(work, runners))
        assert (await read(dead_letters, number)).counts == {DONE: 2_000}
    assert len({row["message_id"] for row in await outbox(pool)}) == len(await outbox(pool)) == 2_000


async def test_a_kill_in_the_middle_of_5000_loses_nothing_and_sends_nothing_twice(
    database: str, pool: Pool, tmp_path: Path
) -> None:
    await add_dead_letters(pool, 5_000)
    async with DeadLetters(database) as dead_letters:
        number = operation(await dead_letters.requeue(DeadLetterFilter(group_id="f1"))).id
        runs = 0
        while (await read(dead_letters, number)).pending:
            runs += 1
            with running(
                ["-m", "tests.dead_letters.run_operation", database, str(number)], tmp_path, name=f"run{runs}"
            ) as process:
                if runs <= 3:
                    await asyncio.to_thread(process.says, "batch\n" * 10 * runs)
                    process.send(signal.SIGKILL)
                await asyncio.to_thread(process.wait, 60)
            # What was sent and what is marked is the same at every moment.
            sent = Counter(row["message_id"] for row in await outbox(pool))
            assert set(sent.values()) == {1}
            assert (await statuses(pool)).count("requeued") == len(sent)
            assert (await read(dead_letters, number)).counts.get(DONE) == len(sent)
        ended = await read(dead_letters, number)
    assert runs == 4
    assert (ended.state, ended.counts) == (OperationState.FINISHED, {DONE: 5_000})
    assert len(await outbox(pool)) == 5_000


async def test_looking_for_work_takes_one_statement_for_operations_and_one_for_results(pool: Pool) -> None:
    queries: list[str] = []
    runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE))
    await pool.execute("select 'the first connection'")
    async with _logged(pool, queries):
        assert await runner.run_once() == 0
        assert await runner.refresh_results() == 0
        await pool.execute("select 'the end'")
        await eventually(lambda: "select 'the end'" in queries)
    assert len(queries) == 3


async def test_a_batch_takes_the_same_few_statements_however_many_letters_it_has(pool: Pool) -> None:
    async def statements(count: int) -> int:
        await pool.execute("truncate outbox_dead_letter cascade; truncate outbox_operation cascade")
        await add_dead_letters(pool, count)
        async with DeadLetters(db_pool=pool) as dead_letters:
            await dead_letters.requeue(ALL)
            runner = OperationsRunner(pool, TABLE, subscribed_queues(pool, TABLE), batch=1_000)
            queries: list[str] = []
            async with _logged(pool, queries):
                assert await runner.run_once() == count
        return len(queries)

    await statements(1)  # the driver looks up a type or two
    assert await statements(2) == await statements(500) <= 21


def _logged(pool: Pool, queries: list[str]) -> "_Logged":
    return _Logged(pool, queries)


class _Logged:
    """Records every statement on the connections of a pool."""

    def __init__(self, pool: Pool, queries: list[str]) -> None:
        self._pool = pool
        self._queries = queries

    async def __aenter__(self) -> None:
        await self._on_all("add_query_logger")

    async def __aexit__(self, *_: object) -> None:
        await self._on_all("remove_query_logger")

    async def _on_all(self, method: str) -> None:
        connections = [await self._pool.acquire() for _ in range(self._pool.get_size())]
        for connection in connections:
            getattr(connection, method)(self._note)
        for connection in connections:
            await self._pool.release(connection)

    def _note(self, record: object) -> None:
        self._queries.append(record.query)  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{"rate": 0}, {"stop_ratio": 1.1}, {"stop_ratio": -0.1}, {"max_items": 0}])
async def test_invalid_options_are_refused(dead_letters: DeadLetters, options: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        await dead_letters.requeue(ALL, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda: Canary(0, timedelta(1)), lambda: Canary(1, timedelta(0)), lambda: ToQueue("")])
def test_invalid_canaries_and_destinations_are_refused(make: object) -> None:
    with pytest.raises(ConfigurationError):
        make()  # type: ignore[operator]


async def test_the_selector_is_stored_in_readable_form(pool: Pool, dead_letters: DeadLetters) -> None:
    ids: Sequence[str] = await add_dead_letters(pool, 150)
    canary = Canary(10, timedelta(seconds=60))
    await dead_letters.requeue(
        ids, destination=ToQueue("elsewhere"), rate=2.5, canary=canary, stop_ratio=0.2, force=True, max_items=200
    )
    row = await pool.fetchrow("select selector::text, options::text from outbox_operation")
    assert row is not None
    assert json.loads(row["selector"]) == {"ids": ids[:20], "count": 150}
    [made] = await dead_letters.operations(active=True)
    options = made.options
    assert (options.destination, options.rate, options.canary) == (ToQueue("elsewhere"), 2.5, canary)
    assert (options.stop_ratio, options.force, options.max_items, options.retention) == (0.2, True, 200, timedelta(days=30))


async def test_the_program_in_the_documentation_does_what_it_says(database: str, pool: Pool) -> None:
    text = (Path(__file__).parents[2] / "docs" / "repair.md").read_text()
    program = text.split("```python\n")[1].split("```")[0]
    await add_dead_letters(pool, 12, queue="orders.charge", exception_type="ConnectionError")
    names: dict[str, Any] = {}
    exec(program, names)
    repairing = asyncio.create_task(names["requeue_charges"](database))

    async def canary() -> bool:
        return len(await outbox(pool)) == 10

    await eventually(canary)
    await add_fact(pool, "processed", *[f"m{n}" for n in range(1, 11)], queue="orders.charge")
    async with asyncio.timeout(30):
        await repairing
    assert len(await outbox(pool)) == 12


async def test_a_runner_works_until_it_is_stopped_also_while_the_broker_is_away(database: str, pool: Pool) -> None:
    away = asyncio.Event()
    stopping = Stopping()

    async def has_queue(queue: str) -> bool:
        if not away.is_set():
            raise BrokerUnavailableError("the broker is away")
        return True

    def failed(error: Exception) -> None:
        assert str(error) == "the broker is away"
        away.set()

    await add_dead_letters(pool, 3)
    async with DeadLetters(database) as dead_letters:
        number = operation(await dead_letters.requeue(ALL)).id
        work = asyncio.create_task(OperationsRunner(pool, TABLE, has_queue).run(stopping, failed=failed))
        await away.wait()
        await pool.execute("update outbox_operation set continue_at = now()")

        async def finished() -> bool:
            return (await read(dead_letters, number)).state is OperationState.FINISHED

        await eventually(finished)
        stopping.request()
        async with asyncio.timeout(30):
            await work


async def test_a_requeue_that_is_put_off_begins_at_its_time_and_not_before(dead_letters: DeadLetters, pool: Pool) -> None:
    ids = await add_dead_letters(pool, 2)
    at = datetime.now(UTC) + timedelta(hours=2)
    begun = await dead_letters.requeue(ids, starts_at=at)
    assert isinstance(begun, Operation)
    assert (begun.continue_at, begun.options.starts_at) == (at, at)
    waiting = await finish(dead_letters, begun.id)
    assert (waiting.state, waiting.counts) == (OperationState.RUNNING, {PENDING: 2})
    await pool.execute("update outbox_operation set continue_at = now()")
    done = await finish(dead_letters, begun.id)
    assert (done.state, done.counts[DONE]) == (OperationState.FINISHED, 2)


async def test_a_time_that_is_over_means_now_and_one_too_far_ahead_is_refused(dead_letters: DeadLetters, pool: Pool) -> None:
    [id_] = await add_dead_letters(pool, 1)
    for wrong in (datetime.now(UTC) + timedelta(days=31), datetime.now()):  # noqa: DTZ005  that is what is wrong about it
        with pytest.raises(ConfigurationError, match="starts_at is a time with an offset"):
            await dead_letters.requeue(id_, starts_at=wrong)
    begun = await dead_letters.requeue(id_, starts_at=datetime.now(UTC) - timedelta(hours=1))
    assert isinstance(begun, Operation)
    assert (await finish(dead_letters, begun.id)).state is OperationState.FINISHED
