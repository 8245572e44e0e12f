"""How long the admin takes to answer where a great deal has piled up: every endpoint that reads."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg
import httpx
from fastapi import FastAPI

from benchmarks.measuring import percentile
from benchmarks.servers import Servers, execute
from outbox.admin import Admin, Principal, Role, admin_router
from outbox.reporting.statistics import LATENCY_BOUNDS

REQUESTS = 40
"""Of each kind, one after another."""
DAYS = 10
"""Days of history, each in a partition of its own."""
KEYS = 50
"""Routing keys, queues and kinds of failures."""


async def admin_reads(servers: Servers, rows: int) -> dict[str, float]:
    """The p95 of each question in milliseconds: `rows` pending and as many sent, a fifth dead letters, ten times the facts."""
    figures: dict[str, float] = {}
    async with servers.fresh_database() as url:
        await _pile_up(url, rows)
        async with _asking(url) as client:
            for question in await _questions(url):
                took = [await _milliseconds(client, question) for _ in range(REQUESTS)]
                figures[f"{question}, first"] = took[0]
                figures[f"{question}, p95"] = percentile(took, 0.95)
    return figures


async def pile_up_dead_letters(url: str, count: int) -> None:
    """So many open ones, a second apart, of KEYS kinds."""
    await execute(url, _LETTERS, count, KEYS)


async def _questions(url: str) -> Sequence[str]:
    """What is asked; ids are of things that are there."""
    connection = await asyncpg.connect(url)
    try:
        pending = await connection.fetchval("select id from outbox_table where sent_at is null offset 1000 limit 1")
        letter = await connection.fetchval("select id from outbox_dead_letter offset 100 limit 1")
        chain = await connection.fetchval("select message_id from outbox_history where parent_id is not null limit 1")
    finally:
        await connection.close()
    return (
        "/backlog",
        "/messages",
        "/messages?state=sent",
        "/messages?routing_key=bench.7",
        f"/messages/{pending}",
        "/dlq",
        "/dlq?total=true&facets=true",
        "/dlq?queue=queue-7&exception_type=Error7",
        "/dlq?q=seven",
        "/dlq?min_failures=3&sort=oldest",
        "/dlq/groups",
        "/dlq/groups?by=queue",
        "/queues",
        "/search?q=root-1-7",
        "/health/verdict",
        "/alerts",
        f"/dlq/{letter}",
        "/chains",
        f"/chains/{chain}",
        "/stats",
        "/stats?from=-1d&group_by=queue",
        "/stats?from=-30d&group_by=queue",
        "/stats?from=-30d&group_by=routing_key",
        "/operations",
        "/components",
        "/topology",
        "/audit",
    )


async def _milliseconds(client: httpx.AsyncClient, question: str) -> float:
    started = time.perf_counter()
    answer = await client.get(question)
    if answer.status_code != httpx.codes.OK:
        raise AssertionError(f"{question}: {answer.status_code} {answer.text[:500]}")
    return (time.perf_counter() - started) * 1_000


@asynccontextmanager
async def _asking(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application whose admin lets everybody in."""
    admin, app = Admin(url), FastAPI()
    app.include_router(admin_router(admin, authenticate=lambda: Principal("bench", Role.ADMIN)), prefix="/outbox")
    transport = httpx.ASGITransport(app)
    async with admin, httpx.AsyncClient(transport=transport, base_url="http://bench/outbox", timeout=60) as client:
        yield client


async def _pile_up(url: str, rows: int) -> None:
    """Fills the tables as years of neglect would."""
    for state in ("null", "now() - n * interval '1 ms'"):
        await execute(
            url,
            "insert into outbox_table (routing_key, body, content_type, created_at, sent_at) "
            f"select 'bench.' || n % $2, '{{\"number\": 1}}', 'application/json', now() - n * interval '1 ms', {state} "
            "from generate_series(1, $1::integer) as n",
            rows,
            KEYS,
        )
    await pile_up_dead_letters(url, rows // 5)
    for day in range(DAYS):
        name = f"outbox_history_bench{day}"
        await execute(
            url,
            f"do $$ begin execute format('create table {name} partition of outbox_history for values from (%L) to (%L)', "
            f"date_trunc('day', now(), 'UTC') - {day} * interval '1 day', "
            f"date_trunc('day', now(), 'UTC') - {day - 1} * interval '1 day'); end $$",
        )
        await execute(url, _FACTS, rows * 10 // DAYS // 4, day, KEYS)
    await execute(url, _SPANS, KEYS, len(LATENCY_BOUNDS) + 1)
    for table in ("outbox_table", "outbox_dead_letter", "outbox_history", "outbox_stats"):
        await execute(url, f"vacuum analyze {table}")


_LETTERS = """
insert into outbox_dead_letter (
    source, exchange, queue, message_id, routing_key, body, content_type, tracking_ids, created_at, attempt, cause,
    exception_type, exception_message, exception_traceback, failed_at, first_failed_at, fingerprint, preview, search, failures
)
select 'worker', 'outbox', 'queue-' || n % $2, 'dead-' || n, 'bench.' || n % $2, '{"number": 1}', 'application/json',
    jsonb_build_array('root-' || n, 'dead-' || n), now() - n * interval '10 s', 5, 'exhausted', 'Error' || n % $2,
    'it went wrong', 'Traceback', now() - n * interval '1 s', now() - n * interval '1 s', md5((n % $2)::text), '{"number": 1}',
    to_tsvector('simple', case when n % 1000 = 0 then 'number seven' else 'number one' end), '[]'
from generate_series(1, $1::integer) as n
"""

# Chains of two messages, each sent and processed.
_FACTS = """
insert into outbox_history (at, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, component)
select
    date_trunc('day', now(), 'UTC') - $2::integer * interval '1 day' + n * (interval '1 day' / ($1::integer + 1)),
    fact, message || '-' || $2 || '-' || n, 'root-' || $2 || '-' || n,
    case message when 'child' then 'root-' || $2 || '-' || n end, 'bench.' || n % $3,
    case fact when 'processed' then 'queue-' || n % $3 end, case fact when 'processed' then 1 end,
    interval '5 ms', interval '2 ms', 'bench'
from generate_series(1, $1::integer) as n, unnest(array['root', 'child']) as message,
    unnest(array['sent', 'processed']) as fact
"""

# As maintenance leaves them: minutes of two days, hours of the month before.
_SPANS = """
insert into outbox_stats (starts_at, seconds, queue, routing_key, processed, failed, latency)
select date_trunc('hour', now()) + interval '1 hour' - n * interval '1 minute', 60, 'queue-' || k, 'bench.' || k, 100, 1,
    array_fill(5::bigint, array[$2::integer])
from generate_series(1, 2 * 24 * 60) as n, generate_series(1, $1::integer / 2) as k
union all
select date_trunc('hour', now()) - interval '2 days' - n * interval '1 hour', 3600, 'queue-' || k, 'bench.' || k, 6000, 60,
    array_fill(300::bigint, array[$2::integer])
from generate_series(1, 28 * 24) as n, generate_series(1, $1::integer / 2) as k
"""
