"""PostgreSQL dies and its synchronous standby is promoted, while everybody works: nothing that was committed is lost."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import psycopg2
import pytest

from outbox import Publisher
from outbox.embedded import EmbeddedPostgres
from tests.servers.postgres import private_postgres, standby_of
from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import Entry, MakeSystem, System
from tests.system.support import inversions

IN_ORDER = Handler(queue="ledger", ordered=True, retry_delays=("20ms",), max_deliveries=1_000)
KEYS = 5
A_MILLION = 1_000_000
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def primary_and_standby(servers_folder: Path) -> Iterator[tuple[EmbeddedPostgres, EmbeddedPostgres]]:
    """A server, and one that follows it synchronously: what is committed here is there."""
    folder = servers_folder / f"failover-{uuid4().hex[:8]}"
    with private_postgres(folder / "primary") as primary, standby_of(primary, folder / "standby") as standby:
        _execute(primary.url, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        yield primary, standby


def _execute(url: str, *statements: str) -> None:
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()


def both_of(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> str:
    """The address of whichever of them takes writes."""
    address = urlsplit(primary.url)
    hosts = f"{address.netloc},127.0.0.1:{urlsplit(standby.url).port}"
    return urlunsplit(address._replace(netloc=hosts, query="target_session_attrs=read-write"))


class Writer:
    """Commits orders with their events, each the next of its key, and knows which commits were confirmed.

    What an outage leaves unknown is left alone: that number is not written again.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._places = [0] * KEYS
        self.confirmed: set[int] = set()
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
                connection = await asyncpg.connect(self._url, timeout=5, command_timeout=10)
                try:
                    while not self.stopping:
                        await self._write(connection)
                finally:
                    connection.terminate()
            await asyncio.sleep(0.05)

    async def _write(self, connection: asyncpg.Connection) -> None:
        key = len(self.confirmed) % KEYS
        number = key * A_MILLION + self._places[key]
        self._places[key] += 1
        async with connection.transaction():
            await connection.execute("insert into orders values ($1)", number)
            await Publisher().publish(connection, "order.placed", {"number": number}, ordering_key=f"key:{key}")
        self.confirmed.add(number)


async def a_failover_loses_nothing(
    system: System, primary: EmbeddedPostgres, standby: EmbeddedPostgres, *, redirect: Callable[[], None]
) -> None:
    worker = system.worker(IN_ORDER)
    await system.queue_is_consumed("ledger")
    processes = [worker, system.relay(), system.relay()]
    writer = Writer(system.database_url)
    writing = asyncio.create_task(writer.run())
    await _handled(system, 100)
    await asyncio.to_thread(primary.kill)
    confirmed = set(writer.confirmed)
    await asyncio.to_thread(_execute, standby.url, "select pg_promote()")
    redirect()
    await eventually(lambda: len(writer.confirmed) > len(confirmed) + 50, timeout=60, message="writing goes on")
    writer.stopping = True
    await writing
    assert writer.confirmed <= await system.orders()
    await system.everything_is_handled("ledger", timeout=90)
    assert all(process.alive for process in processes), "no process was started again"
    assert inversions(_numbered_again(system.journal.entries, await system.orders())) == []


def _numbered_again(entries: Iterable[Entry], orders: set[int]) -> list[Entry]:
    """With the place of each number among those of its key that were committed: what an outage rolled back left gaps."""
    places: dict[int, int] = {}
    for number in sorted(orders):
        key = number // A_MILLION
        before = [place for other, place in places.items() if other // A_MILLION == key]
        places[number] = key * A_MILLION + len(before) + 1
    return [replace(entry, number=places[entry.number]) for entry in entries]


async def _handled(system: System, number: int) -> None:
    await eventually(lambda: len(system.journal.numbers("ledger")) >= number, timeout=90, message=f"{number}\n{system.tails()}")


async def test_behind_an_address_that_moves_a_promoted_standby_goes_on_where_the_primary_was(
    primary_and_standby: tuple[EmbeddedPostgres, EmbeddedPostgres], proxied: Callable[[str], Proxy], make_system: MakeSystem
) -> None:
    primary, standby = primary_and_standby
    proxy = proxied(primary.url)
    system = await make_system(proxy.url, worker_options={"lease": 2.0})
    await a_failover_loses_nothing(system, primary, standby, redirect=lambda: proxy.redirect(standby.url))


@pytest.mark.parametrize("kind", [pytest.param("rabbitmq", marks=pytest.mark.rabbitmq), "postgres"])
async def test_with_both_addresses_in_the_url_a_promoted_standby_goes_on_where_the_primary_was(
    primary_and_standby: tuple[EmbeddedPostgres, EmbeddedPostgres],
    request: pytest.FixtureRequest,
    make_system: MakeSystem,
    kind: str,
) -> None:
    primary, standby = primary_and_standby
    url = both_of(primary, standby)
    if kind == "rabbitmq":
        system = await make_system(url, request.getfixturevalue("broker_url"))
    else:
        system = await make_system(url, worker_options={"lease": 2.0})
    await a_failover_loses_nothing(system, primary, standby, redirect=lambda: None)
