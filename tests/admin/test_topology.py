"""`GET /topology`: nodes, edges and warnings."""

import asyncio
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aio_pika
import asyncpg
import httpx
import pytest

from outbox import Consumer, MessageRelay, Worker
from outbox.admin import Admin, Role
from outbox.admin import topology as routes
from outbox.errors import ConfigurationError
from outbox.transports.rabbitmq import overview
from tests.admin.rows import insert
from tests.admin.support import client_of, serving
from tests.relay.support import ScriptedTransport
from tests.reporting.support import at_work
from tests.support import eventually


@pytest.fixture(autouse=True)
def looking_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_AGE", timedelta(0))


async def shown(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/topology")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def edges(topology: dict[str, Any]) -> set[tuple[str, str, str, str | None]]:
    return {(edge["source"], edge["target"], edge["kind"], edge["binding_key"]) for edge in topology["edges"]}


def codes(topology: dict[str, Any]) -> dict[str, str]:
    return {warned["code"]: warned["node"] for warned in topology["warnings"]}


async def handle(body: object) -> None:
    del body


async def test_relays_with_different_brokers_are_an_error_and_need_attention(
    viewer: httpx.AsyncClient, database: str, connection: asyncpg.Connection
) -> None:
    first, second = MessageRelay(database, broker=database), MessageRelay(database, broker=ScriptedTransport())
    async with at_work(first):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_relay"))
        assert "relays_disagree" not in codes(await shown(viewer))
        with pytest.raises(ConfigurationError):
            async with asyncio.timeout(60):
                await second.run(handle_signals=False)
        assert codes(await shown(viewer))["relays_disagree"] == "exchange:outbox"
        verdict = (await viewer.get("/health/verdict")).json()
        assert "relays_disagree" in {finding["code"] for finding in verdict["findings"]}


async def test_subscriptions_and_workers_are_nodes_and_edges(
    viewer: httpx.AsyncClient, database: str, connection: asyncpg.Connection
) -> None:
    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'old', 'a.b')")
    worker = Worker(broker=database, consumers=[Consumer("order.*", handle, queue="mail")], name="worker-1")
    async with at_work(worker):

        async def drawn() -> dict[str, Any]:
            topology = await shown(viewer)
            assert edges(topology) == {
                ("exchange:outbox", "queue:mail", "binding", "order.*"),
                ("exchange:outbox", "queue:old", "binding", "a.b"),
                ("queue:mail", "worker:worker-1", "consumer", None),
            }
            return topology

        topology = await eventually(drawn)
    named = {edge[end] for edge in topology["edges"] for end in ("source", "target")}
    assert named == {node["id"] for node in topology["nodes"]}
    assert codes(topology) == {"subscription_without_consumer": "queue:old"}
    assert (topology["broker"], topology["degraded"], topology["bindings_known"]) == ("postgresql", [], True)


async def test_queues_have_the_counts_of_the_backlog(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a')")
    await connection.execute("""
        insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at)
        values ('outbox', 'mail', '1', 'a', '', '[]', 1, now()), ('outbox', 'mail', '2', 'a', '', '[]', 1, now()),
            ('outbox', 'mail', '3', 'a', '', '[]', 2, now() + interval '1 hour')
    """)

    async def counted() -> dict[str, Any]:
        topology = await shown(viewer)
        [mail] = [node for node in topology["nodes"] if node["id"] == "queue:mail"]
        assert (mail["queued"], mail["retrying"], mail["consumer_count"]) == (2, 1, 0)
        return topology

    topology = await eventually(counted)
    assert topology["warnings"][0]["summary"] == "no worker consumes the queue 'mail', and 3 messages wait in it"


async def test_the_hint_on_an_unused_queue_names_what_is_left_to_do(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    async def hinted(*hints: str) -> bool:
        return [each["hint"] for each in (await shown(viewer))["warnings"]] == list(hints)

    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a')")
    await connection.execute("""
        insert into outbox_component (id, kind, name, host, process_id, version, every, activity, applied, consumers)
        values ('a', 'worker', 'worker-1', 'h', 1, '1', interval '1 ms', '{}', '[]', '[{"queue": "mail", "binding_key": "a"}]')
    """)
    needless = "start its worker; if it is no longer needed, "
    await eventually(lambda: hinted(f"{needless}delete its rows of outbox_subscription"))
    await connection.execute("""
        insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at)
        values ('outbox', 'mail', '1', 'a', '', '[]', 1, now())
    """)
    end = "end its messages with `outbox deliveries dead-letter --queue mail`"
    await eventually(lambda: hinted(f"{needless}delete its rows of outbox_subscription, and {end}"))
    await connection.execute("delete from outbox_subscription")
    await eventually(lambda: hinted(f"{needless}{end}"))
    await connection.execute("delete from outbox_delivery")
    await eventually(hinted)


async def test_a_single_message_is_one_message(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a')")
    await connection.execute("""
        insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at)
        values ('outbox', 'mail', '1', 'a', '', '[]', 1, now())
    """)

    async def warned() -> bool:
        summary: str = (await shown(viewer))["warnings"][0]["summary"]
        return summary == "no worker consumes the queue 'mail', and 1 message waits in it"

    await eventually(warned)


async def test_unroutable_routing_keys_are_warnings(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    first = await insert(connection, routing_key="a", last_error="unroutable", send_after="1 second")
    await insert(connection, routing_key="a", last_error="unroutable", send_after="infinity")
    await insert(connection, routing_key="b", last_error="unroutable", send_after="infinity", target_queue="mail")

    async def found() -> list[dict[str, Any]]:
        warnings: list[dict[str, Any]] = (await shown(viewer))["warnings"]
        assert [(each["code"], each["severity"]) for each in warnings] == [("unroutable", "error")] * 2
        return warnings

    warnings = await eventually(found)
    assert "'a'" in warnings[0]["summary"]
    assert f"the first held message is {first}" in warnings[0]["hint"]
    assert warnings[1]["summary"] == "messages for the queue 'mail' are held: the queue does not exist"


async def _report_consumers(connection: asyncpg.Connection, *consumers: dict[str, Any]) -> None:
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers) "
        "values ('1', 'worker', 'worker-1', 'h', 1, '1', '1 hour', $1)",
        json.dumps(consumers),
    )


async def test_missing_queues_and_exchanges_are_found_without_the_management_api(
    database: str, connection: asyncpg.Connection, broker_url: str
) -> None:
    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*", "retry": {"delays_seconds": [60]}})
    async with await aio_pika.connect(broker_url) as rabbit:
        channel = await rabbit.channel()
        await channel.declare_exchange("outbox", aio_pika.ExchangeType.TOPIC, durable=True)
        await channel.declare_queue("mail", durable=True)
        async with serving(Admin(database, broker=broker_url)) as app, client_of(app, Role.VIEWER) as client:

            async def seen() -> dict[str, Any] | None:
                topology = await shown(client)
                return None if topology["degraded"] else topology

            topology = await eventually(seen)
    assert topology is not None
    assert codes(topology) == {
        "exchange_missing": "exchange:outbox.dlx",
        "dead_letter_queue_missing": "queue:mail.dlq",
        "retry_queue_missing": "queue:outbox.delay_60s",
        "queue_without_consumer": "queue:mail",
    } | {"exchange_missing": codes(topology)["exchange_missing"]}
    assert ("exchange:outbox", "queue:mail", "binding", "order.*") in edges(topology)
    assert ("queue:mail", "queue:outbox.delay_60s", "retry", None) in edges(topology)
    assert topology["bindings_known"] is False


@pytest.mark.parametrize("paused", ["queue", "worker"])
async def test_a_paused_queue_is_none_without_consumer_while_its_worker_runs(
    database: str, connection: asyncpg.Connection, broker_url: str, paused: str
) -> None:
    """A paused worker cancels its subscription: the advice to delete the queue would be wrong."""

    async def handle(body: object) -> None: ...

    worker = Worker(broker=broker_url, db_engine_url=database, consumers=[Consumer("order.*", handle, queue="mail")])
    await connection.execute(
        "insert into outbox_control (scope, name) values ($1, $2)", paused, "mail" if paused == "queue" else ""
    )

    async def warnings() -> dict[str, Any]:
        async with serving(Admin(database, broker=broker_url)) as app, client_of(app, Role.VIEWER) as client:
            topology = await shown(client)
        assert not topology["degraded"]
        return codes(topology)

    async with await aio_pika.connect(broker_url) as rabbit:
        await (await rabbit.channel()).declare_queue("mail", durable=True)
        async with at_work(worker):
            is_paused = "select exists(select from outbox_component where activity ->> 'state' = 'paused')"
            await eventually(lambda: connection.fetchval(is_paused))
            assert "queue_without_consumer" not in await eventually(warnings)
        assert "queue_without_consumer" in await eventually(warnings)


async def test_the_management_api_adds_bindings_and_limits(
    database: str, connection: asyncpg.Connection, broker_url: str, rabbitmq_server: Any
) -> None:
    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*"})
    async with await aio_pika.connect(broker_url) as rabbit:
        channel = await rabbit.channel()
        exchange = await channel.declare_exchange("outbox", aio_pika.ExchangeType.TOPIC, durable=True)
        await channel.declare_exchange("outbox.dlx", aio_pika.ExchangeType.DIRECT, durable=True)
        for name in ("mail", "other"):
            queue = await channel.declare_queue(name, durable=True, arguments={"x-expires": 600_000})
            await queue.bind(exchange, "order.*")
            await queue.bind(exchange, f"{name}.old")
        await channel.declare_queue("mail.dlq", durable=True, arguments={"x-message-ttl": 60_000})
        admin = Admin(database, broker=broker_url, management_url=rabbitmq_server.admin_url)
        async with serving(admin) as app, client_of(app, Role.VIEWER) as client:

            async def seen() -> dict[str, Any]:
                topology = await shown(client)
                assert {"dead_letters_vanish", "queue_limit", "old_binding"} <= set(codes(topology))
                return topology

            topology = await eventually(seen)
    assert topology["bindings_known"] is True
    assert ("exchange:outbox", "queue:other", "binding", "order.*") in edges(topology)
    # Limits of a queue that no worker has reported are its owner's business.
    assert [warned["node"] for warned in topology["warnings"] if warned["code"] == "queue_limit"] == ["queue:mail"]
    old = [warned["summary"] for warned in topology["warnings"] if warned["code"] == "old_binding"]
    assert len(old) == 1
    assert "'mail.old'" in old[0]


@pytest.mark.parametrize("wrong", ["password", "port"])
async def test_without_the_management_api_that_is_configured_amqp_is_asked(
    database: str,
    connection: asyncpg.Connection,
    broker_url: str,
    rabbitmq_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
) -> None:
    monkeypatch.setattr(overview, "MANAGEMENT_RETRY", timedelta(0))
    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*"})
    async with await aio_pika.connect(broker_url) as rabbit:
        channel = await rabbit.channel()
        await channel.declare_queue("mail", durable=True)
        await channel.default_exchange.publish(aio_pika.Message(b"x"), "mail")
    url = urlsplit(rabbitmq_server.admin_url)
    host = f"{url.username}:{'wrong' if wrong == 'password' else url.password}@{url.hostname}"
    bad = urlunsplit(url._replace(netloc=f"{host}:{1 if wrong == 'port' else url.port}"))
    admin = Admin(database, broker=broker_url, management_url=bad)
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:

        async def counted() -> Any:
            queues = (await client.get("/backlog")).json()["queues"]
            return any(each["queue"] == "mail" and each["queued"] and each["queued"]["value"] == 1 for each in queues or ())

        await eventually(counted)
        topology = await shown(client)
        assert (topology["degraded"], topology["bindings_known"]) == ([], False)
        [problem] = [each for each in topology["warnings"] if each["code"] == "management_unreachable"]
        assert (problem["severity"], "OUTBOX_MANAGEMENT_URL" in problem["hint"]) == ("warning", True)
        assert ("401" if wrong == "password" else "does not answer") in problem["summary"]
        assert "wrong" not in problem["summary"]
        codes_of = {finding["code"] for finding in (await client.get("/health/verdict")).json()["findings"]}
        assert ("management_unreachable" in codes_of, "broker_unreachable" in codes_of) == (True, False)


async def test_without_the_broker_the_topology_is_what_workers_report(database: str, connection: asyncpg.Connection) -> None:
    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*"})
    admin = Admin(database, broker="amqp://guest:guest@127.0.0.1:1/")
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
        topology = await shown(client)
    assert topology["degraded"] == ["broker"]
    assert "guest:guest" not in topology["broker_error"]["message"]
    assert ("exchange:outbox", "queue:mail", "binding", "order.*") in edges(topology)


def _http(content: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n{content}".encode()


READS = ("/topology", "/backlog", "/queues", "/queues/mail", "/health/verdict", "/search?q=mail")
OTHER = "the management API gives other answers than RabbitMQ"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the management API does not answer: SSH-2.0"),
        (_http('{"items": []}')[:-5], "the management API does not answer"),
        (_http("[" * 100_000), "the management API does not answer: "),
        (_http('{"items": null, "page_count": 1}'), OTHER),
        (_http('{"items": [{}], "page_count": 1}'), OTHER),
        (_http('"a text"'), OTHER),
        (_http("[1]"), OTHER),
        (_http("{}", "404 Not Found"), "the management API does not know the virtual host 'shop/eu'"),
    ],
    ids=["another protocol", "cut", "nested", "no list", "no names", "a text", "numbers", "not found"],
)
async def test_a_management_api_that_gives_other_answers_is_named_and_no_queue_is_said_to_be_missing(
    database: str, connection: asyncpg.Connection, answer: bytes, why: str
) -> None:
    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()
            await writer.wait_closed()

    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*"})
    async with await asyncio.start_server(give, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        admin = Admin(database, broker="amqp://guest:guest@127.0.0.1:1/shop%2Feu", management_url=url)
        async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
            answers = {path: await client.get(path) for path in READS}
    assert {path: each.status_code for path, each in answers.items()} == dict.fromkeys(READS, 200)
    assert all(why in answers[path].json()["broker_error"]["message"] for path in READS[:3])
    found = {finding["code"] for finding in answers["/health/verdict"].json()["findings"]}
    assert "broker_unreachable" in found
    assert not found & {"queue_missing", "exchange_missing", "database_unreachable"}


async def test_a_management_api_whose_answers_take_long_is_not_an_unavailable_database(
    database: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        entered.append(writer)
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        left.append(writer)

    entered, left = list[asyncio.StreamWriter](), list[asyncio.StreamWriter]()
    monkeypatch.setattr(routes, "BROKER_TIMEOUT", timedelta(seconds=0.5))
    monkeypatch.setattr(routes, "TIMEOUT", timedelta(seconds=2))
    monkeypatch.setattr(overview, "TIMEOUT", timedelta(seconds=1))
    await _report_consumers(connection, {"queue": "mail", "binding_key": "order.*"})
    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        admin = Admin(database, broker="amqp://guest:guest@127.0.0.1:1/", management_url=url)
        async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
            assert "takes longer than 0.5 s" in (await shown(client))["broker_error"]["message"]
            codes_of = {finding["code"] for finding in (await client.get("/health/verdict")).json()["findings"]}
        # No thread goes on reading.
        await eventually(lambda: entered and len(left) == len(entered))
    assert ("broker_unreachable" in codes_of, "database_unreachable" in codes_of) == (True, False)
