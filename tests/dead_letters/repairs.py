"""Creates dead letters and parked rows with SQL, and reads them back."""

import json
from collections.abc import Sequence
from typing import Any

from outbox.dead_letters import ItemOutcome, Operation, Repaired
from outbox.postgres.pool import Pool

QUEUE = "orders.confirm"
DONE = (ItemOutcome.DONE, "")


async def add_dead_letters(
    pool: Pool, count: int = 1, *, queue: str = QUEUE, subscribed: bool = True, **columns: object
) -> list[str]:
    """Creates dead letters of `queue`; returns their ids. Message ids are `m1`, `m2`, …; other columns can be overridden."""
    if subscribed:
        await pool.execute(
            "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', $1, $1) on conflict do nothing",
            queue,
        )
    values: dict[str, object] = {
        "source": "worker",
        "exchange": "outbox",
        "queue": queue,
        "routing_key": "order.placed",
        "body": b'{"id": 7}',
        "content_type": "application/json",
        "attempt": 5,
        "cause": "exhausted",
        "exception_type": "ValueError",
        "exception_message": "no such order",
        "exception_traceback": "",
        "fingerprint": "f1",
        **columns,
    }
    places = ", ".join(f"${number}" for number in range(2, len(values) + 2))
    rows = await pool.fetch(
        f"insert into outbox_dead_letter (message_id, tracking_ids, created_at, {', '.join(values)}) "
        f"select 'm' || n, jsonb_build_array('root', 'm' || n), now() - interval '1 hour', {places} "
        "from generate_series(1, $1) as n returning id::text",
        count,
        *values.values(),
    )
    return [row["id"] for row in rows]


async def park(pool: Pool, **columns: object) -> str:
    """Creates a row that the relay has parked; returns its id as operators know it."""
    values = {"routing_key": "order.placed", "body": b"{}", "attempts": 20, "last_error": "Nacked: no", **columns}
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    id_ = await pool.fetchval(
        f"insert into outbox_table ({', '.join(values)}, failed_at, send_after) values ({places}, now(), now()) returning id",
        *values.values(),
    )
    return f"outbox-{id_}"


async def add_fact(pool: Pool, fact: str, *message_ids: str, queue: str = QUEUE, error: str = "") -> None:
    """Writes a fact about messages to the history, as a worker of `queue` does."""
    await pool.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, error_type, error_message) "
        "select clock_timestamp(), $1, id, 'root', 'order.placed', $3, 1, case when $4 <> '' then 'ValueError' end, $4 "
        "from unnest($2::text[]) as id",
        fact,
        list(message_ids),
        queue,
        error,
    )
    await pool.execute("update outbox_operation_item set check_at = now() where check_at is not null")
    await pool.execute("update outbox_operation set continue_at = now()")


async def outbox(pool: Pool) -> Sequence[Any]:
    """All rows of the outbox table, oldest first."""
    return await pool.fetch("select *, tracking_ids ->> -1 as message_id from outbox_table order by id")


async def letters(pool: Pool) -> Sequence[Any]:
    """All dead letters, oldest first."""
    return await pool.fetch("select * from outbox_dead_letter order by id")


async def statuses(pool: Pool) -> list[str]:
    """The status of each dead letter, oldest first."""
    return [row["status"] for row in await letters(pool)]


def at_once(answer: Repaired | Operation) -> dict[str, tuple[ItemOutcome, str]]:
    """Outcome and reason of each id of an action without an operation."""
    assert isinstance(answer, Repaired)
    return {item.id: (item.outcome, item.reason) for item in answer.items}


def operation(answer: Repaired | Operation) -> Operation:
    """Returns the operation that an action created."""
    assert isinstance(answer, Operation)
    return answer


def decoded(value: str | None) -> Any:
    """Parses a jsonb value from asyncpg."""
    return None if value is None else json.loads(value)
