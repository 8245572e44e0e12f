"""The tests' own servers keep their promises."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import aio_pika
import asyncpg
import psycopg2
import pytest

from tests.servers.postgres import OwnPostgres
from tests.servers.proxy import Proxy, Towards
from tests.servers.rabbitmq import MAX_MESSAGE_SIZE, OwnRabbitMQ
from tests.support import RabbitAdmin, eventually, eventually_sync

# Databases


async def test_a_test_has_an_empty_database_of_its_own(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        tables = await connection.fetchval("select count(*) from pg_class where relnamespace = 'public'::regnamespace")
        name = await connection.fetchval("select current_database()")
    finally:
        await connection.close()
    assert tables == 0
    assert database_url.endswith("/" + name)


def test_a_database_also_serves_synchronous_tests(database_url: str) -> None:
    with contextlib.closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
        cursor.execute("select 1")
        assert cursor.fetchone() == (1,)


async def test_committed_rows_survive_a_kill_of_the_tests_own_server(own_postgres: OwnPostgres) -> None:
    connection = await asyncpg.connect(own_postgres.url)
    await connection.execute("create table kept (number int); insert into kept values (7)")
    own_postgres.kill()
    with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
        await connection.fetchval("select 1")
    connection.terminate()

    own_postgres.start()

    connection = await asyncpg.connect(own_postgres.url)
    assert await connection.fetchval("select number from kept") == 7
    await connection.close()


async def test_a_test_may_leave_its_own_server_dead(own_postgres: OwnPostgres) -> None:
    own_postgres.kill()


async def test_the_next_test_finds_its_own_server_alive(own_postgres: OwnPostgres) -> None:
    connection = await asyncpg.connect(own_postgres.url)
    assert await connection.fetchval("select 1") == 1
    await connection.close()


# Brokers


async def test_a_test_has_an_empty_virtual_host_of_its_own(broker_url: str, broker_admin: RabbitAdmin) -> None:
    assert broker_url.endswith("/" + broker_admin.vhost)
    assert await broker_admin.queues() == {}
    connection = await aio_pika.connect(broker_url)
    await connection.close()


async def test_the_admin_declares_publishes_counts_and_takes(broker_admin: RabbitAdmin) -> None:
    await broker_admin.declare_exchange("events")
    await broker_admin.declare_queue("orders", arguments={"x-dead-letter-exchange": ""})
    await broker_admin.bind("events", "orders", "order.#")

    assert await broker_admin.publish("events", "order.placed", b"\x00\xff", headers={"attempt": 1})
    assert not await broker_admin.publish("events", "user.created", b"")

    assert await broker_admin.depth("orders") == 1
    queue = await broker_admin.queue("orders")
    assert queue is not None
    assert queue["arguments"] == {"x-queue-type": "quorum", "x-dead-letter-exchange": ""}
    assert [binding["routing_key"] for binding in await broker_admin.bindings(queue="orders")] == ["order.#"]
    [message] = await broker_admin.get("orders")
    assert message["body"] == b"\x00\xff"
    assert message["properties"]["headers"]["attempt"] == 1
    assert await broker_admin.depth("orders") == 0
    assert await broker_admin.queue("nowhere") is None


async def test_a_user_without_rights_is_refused(broker_admin: RabbitAdmin) -> None:
    url = await broker_admin.create_user("guest-of-test", "s3cret/word")
    with pytest.raises(aio_pika.exceptions.CONNECTION_EXCEPTIONS):
        await aio_pika.connect(url)
    await broker_admin.permit("guest-of-test", configure="^$", write="", read="")
    connection = await aio_pika.connect(url)
    await connection.close()
    await broker_admin.delete_user("guest-of-test")


async def test_an_operator_closes_connections(broker_url: str, broker_admin: RabbitAdmin) -> None:
    connection = await aio_pika.connect(broker_url)
    await eventually(broker_admin.connections)
    assert await broker_admin.close_connections() == 1
    # aiormq has another error for what it knows to be closed already.
    with pytest.raises((aio_pika.exceptions.AMQPError, RuntimeError)):
        await connection.channel()
    await connection.close()


async def test_the_private_broker_refuses_bodies_over_its_limit(own_rabbitmq: OwnRabbitMQ) -> None:
    connection = await aio_pika.connect(own_rabbitmq.url)
    channel = await connection.channel()
    with pytest.raises(aio_pika.exceptions.AMQPError):
        await channel.default_exchange.publish(aio_pika.Message(bytes(MAX_MESSAGE_SIZE + 1)), "nowhere")
    await connection.close()


async def test_a_confirmed_message_survives_a_kill_of_the_tests_own_broker(own_rabbitmq: OwnRabbitMQ) -> None:
    await own_rabbitmq.admin.declare_queue("kept")
    await own_rabbitmq.admin.publish("", "kept", b"still here")
    own_rabbitmq.kill()

    own_rabbitmq.start()

    assert await eventually(lambda: _depth(own_rabbitmq, "kept")) == 1


async def _depth(broker: OwnRabbitMQ, queue: str) -> int:
    with contextlib.suppress(aio_pika.exceptions.AMQPError):
        return await broker.admin.depth(queue)
    return 0


async def test_a_frozen_broker_keeps_its_connections_and_answers_nothing(own_rabbitmq: OwnRabbitMQ) -> None:
    connection = await aio_pika.connect(own_rabbitmq.url)
    own_rabbitmq.freeze()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.channel(), 0.3)
    assert not connection.is_closed
    own_rabbitmq.thaw()
    await connection.close()


# The proxy


@pytest.fixture
async def echo_url() -> AsyncIterator[str]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.read(1000):
                writer.write(line)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _open(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def _say(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], line: bytes, *, seconds: float = 30) -> bytes:
    streams[1].write(line)
    return await asyncio.wait_for(streams[0].read(1000), seconds)


async def test_a_proxy_forwards_both_ways(echo_url: str, proxied: Callable[[str], Proxy]) -> None:
    streams = await _open(proxied(echo_url))
    assert await _say(streams, b"hello") == b"hello"
    streams[1].close()


async def test_what_a_paused_proxy_holds_back_arrives_after_it_resumes(echo_url: str, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(echo_url)
    streams = await _open(proxy)
    proxy.pause(Towards.CLIENT)
    with pytest.raises(TimeoutError):
        await _say(streams, b"held", seconds=0.2)
    proxy.resume()
    assert await streams[0].readexactly(4) == b"held"
    streams[1].close()


async def test_a_swallowed_answer_never_comes(echo_url: str, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(echo_url)
    streams = await _open(proxy)
    proxy.swallow()
    with pytest.raises(TimeoutError):
        await _say(streams, b"lost", seconds=0.2)
    proxy.resume()
    assert await _say(streams, b"next") == b"next"
    streams[1].close()


async def test_a_cut_resets_connections_and_lets_new_ones_in(echo_url: str, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(echo_url)
    streams = await _open(proxy)
    assert await _say(streams, b"one") == b"one"
    assert proxy.cut() == 1
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(streams[0].readexactly(1), 30)
    streams[1].close()
    again = await _open(proxy)
    assert await _say(again, b"two") == b"two"
    again[1].close()


async def test_a_refusing_proxy_accepts_no_connection_until_it_is_opened(
    echo_url: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(echo_url)
    proxy.refuse()
    with pytest.raises(ConnectionError):
        await _connect_and_read(proxy)
    proxy.accept()
    streams = await _open(proxy)
    assert await _say(streams, b"in") == b"in"
    streams[1].close()


async def _connect_and_read(proxy: Proxy) -> bytes:
    """Depending on who is quicker, the reset is met while connecting or while reading."""
    reader, writer = await _open(proxy)
    try:
        return await asyncio.wait_for(reader.readexactly(1), 30)
    finally:
        writer.close()


async def test_a_proxied_address_keeps_user_password_and_path(database_url: str, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(database_url)
    connection = await asyncpg.connect(proxy.url)
    assert await connection.fetchval("select 1") == 1
    await connection.close()


# Waiting


async def test_eventually_returns_the_first_truthy_answer() -> None:
    answers = iter([0, None, "", "there"])
    assert await eventually(lambda: next(answers)) == "there"


async def test_eventually_takes_asynchronous_predicates_and_assertions_as_not_yet() -> None:
    counts = iter(range(5))

    async def third_time() -> bool:
        assert next(counts) >= 2
        return True

    assert await eventually(third_time)


async def test_eventually_says_what_it_saw_last() -> None:
    seen: list[int] = []
    with pytest.raises(AssertionError, match=r"(?s)not within 0.05 s: .*lambda: seen.*last value: \[\]"):
        await eventually(lambda: seen, timeout=0.05)


def test_eventually_without_an_event_loop() -> None:
    answers = iter([False, 3])
    assert eventually_sync(lambda: next(answers)) == 3
    with pytest.raises(AssertionError, match=r"not within 0.02 s: the moon rises"):
        eventually_sync(lambda: False, timeout=0.02, message="the moon rises")
