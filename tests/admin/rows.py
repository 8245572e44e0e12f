"""Rows of the outbox in every state, made by SQL alone."""

from typing import Any

import asyncpg

BODY = b'{"order": 7, "token": "abc"}'


async def insert(connection: asyncpg.Connection, **columns: Any) -> str:
    """A row, and its id as operators know it. Times are intervals from now: `send_after="1 hour"`."""
    values: dict[str, Any] = {"routing_key": "order.placed", "body": BODY, "content_type": "application/json", **columns}
    names = ", ".join(values)
    places = ", ".join(_place(name, number) for number, name in enumerate(values, 1))
    statement = f"insert into outbox_table ({names}) values ({places}) returning id"
    return str(await connection.fetchval(statement, *values.values()))


async def insert_each(connection: asyncpg.Connection) -> dict[str, str]:
    """One row in each state, and their ids by state."""
    key = {"ordering_key": "customer 7"}
    return {
        "pending": await insert(connection, send_after="-1 minute"),
        "scheduled": await insert(connection, send_after="1 hour"),
        "retrying": await insert(connection, send_after="1 minute", attempts=2, last_error="nacked: password=secret"),
        "held": await insert(connection, routing_key="unbound", send_after="15 seconds", last_error="unroutable", **key),
        "stalled": await insert(connection, routing_key="full", send_after="infinity", last_error="stalled"),
        "blocked": await insert(connection, send_after="infinity", last_error="blocked", **key),
        "parked": await insert(connection, failed_at="-1 day", attempts=20, last_error="nacked: no"),
        "sent": await insert(connection, sent_at="-1 second"),
    }


_TIMES = ("send_after", "failed_at", "sent_at", "created_at", "held_at")


def _place(name: str, number: int) -> str:
    if name not in _TIMES:
        return f"${number}"
    return f"case when ${number}::text = 'infinity' then timestamptz 'infinity' else now() + ${number}::text::interval end"


async def deliver(connection: asyncpg.Connection, queue: str = "mail", **columns: Any) -> str:
    """A delivery, due now. Times are intervals from now."""
    values = {"available_at": "-1 second", "attempt": 1, "ordering_key": None, "failures": None, "message_id": "m", **columns}
    found = await connection.fetchval(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, content_type, tracking_ids, attempt, "
        "available_at, ordering_key, failures, lease_token, leased_until) select 'outbox', $1, $2, 'order.placed', $3, "
        "'application/json', jsonb_build_array($2::text), $4, now() + $5::text::interval, $6, $7::text::jsonb, "
        "case when $8 then gen_random_uuid() end, case when $8 then now() + interval '1 minute' end returning id",
        queue,
        values["message_id"],
        values.get("body", BODY),
        values["attempt"],
        values["available_at"],
        values["ordering_key"],
        values["failures"],
        values.get("leased", False),
    )
    return str(found)
