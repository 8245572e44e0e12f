"""The example, from the HTTP request to the last event, over both transports."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.orders.consumers import consumers
from outbox import Publisher
from tests.app.support import Service, service
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.servers.rabbitmq import fresh_vhost, with_vhost
from tests.support import RabbitAdmin, eventually_sync
from tests.support.processes import free_port, running


@pytest.fixture(scope="module", params=["postgresql", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(transport: str, database_url: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a service of the test's own."""
    servers = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MIGRATE": "true"}
    return servers | ({"OUTBOX_BROKER_URL": request.getfixturevalue("broker_url")} if transport == "rabbitmq" else {})


@pytest.fixture(scope="module")
def shared_database(transport: str, postgres_server: PostgresServer) -> Iterator[str]:
    """The database of `running_service`."""
    with fresh_database(postgres_server.url) as name:
        yield with_database(postgres_server.url, name)


@pytest.fixture(scope="module")
def shared_broker(transport: str, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The virtual host of `running_service`, if it has one."""
    if transport == "postgresql":
        yield None
        return
    server = request.getfixturevalue("rabbitmq_server")
    with fresh_vhost(server) as vhost:
        yield with_vhost(server.url, vhost)


@pytest.fixture(scope="module")
def running_service(
    shared_database: str, shared_broker: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A running service with all queues bound: a queue misses events that are sent before it is bound.

    All tests of a transport share it, because a start costs more than what they do with it.
    """
    settings = {"OUTBOX_DATABASE_URL": shared_database, "OUTBOX_MIGRATE": "true"}
    if shared_broker is not None:
        settings["OUTBOX_BROKER_URL"] = shared_broker
    with service(tmp_path_factory.mktemp("service"), settings) as running:
        for consumer in consumers:
            running.process.says(f"consumes queue {consumer.queue}, bound")
        yield running


def test_an_order_goes_through_every_event_until_it_is_confirmed(running_service: Service) -> None:
    order = running_service.ends_as(running_service.place(), "confirmed")
    assert (order["customer"], order["sku"], order["quantity"]) == ("ada@example.com", "book", 1)

    def noted() -> bool:
        events = [event["event"] for event in running_service.order(order["id"])["events"]]
        return sorted(events) == sorted(["order.placed", "payment.captured", "stock.reserved", "order.confirmed"])

    eventually_sync(noted)


def test_a_flaky_payment_recovers_on_its_retry(running_service: Service) -> None:
    running_service.ends_as(running_service.place("flaky"), "confirmed")
    assert "the payment provider did not answer" in running_service.process.output


def test_a_forbidden_order_is_rejected_and_leaves_a_dead_letter(
    running_service: Service, shared_database: str, shared_broker: str | None, request: pytest.FixtureRequest
) -> None:
    running_service.ends_as(running_service.place("forbidden"), "rejected")
    if shared_broker is None:
        eventually_sync(lambda: _dead_letters(shared_database) == [("orders.payment", "rejected")])
    else:
        admin = RabbitAdmin(request.getfixturevalue("rabbitmq_server").admin_url, shared_broker)
        archived = [("orders.payment", "rejected")]  # by the archiver, which may have been quicker
        eventually_sync(
            lambda: asyncio.run(admin.depth("orders.payment.dlq")) == 1 or _dead_letters(shared_database) == archived,
            interval=0.2,
        )


def test_metrics_show_what_relay_and_worker_did(running_service: Service) -> None:
    counters = (
        'outbox_messages_processed_total{exchange_name="outbox",queue="orders.payment",status="success"}',
        'http_requests_total{handler="/orders",method="POST",status="2xx"}',
    )
    before = _values(running_service.get("/metrics").text)
    running_service.ends_as(running_service.place(), "confirmed")
    metrics = running_service.get("/metrics").text
    after = _values(metrics)
    assert [after[name] - before.get(name, 0) for name in counters] == [1, 1]
    assert after['outbox_active_consumers{exchange_name="outbox",queue="orders.email"}'] == 1
    for name in (
        'outbox_messages_published_total{exchange_name="outbox"}',
        "outbox_message_age_seconds_bucket",
        "outbox_table_backlog",
    ):
        assert name in metrics
    assert "/outbox/health" not in metrics


def _values(metrics: str) -> dict[str, float]:
    """Each sample by its name with labels."""
    samples = (line.rpartition(" ") for line in metrics.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_metrics_are_served_in_the_format_that_the_client_accepts(running_service: Service) -> None:
    prometheus = (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    )
    answer = running_service.get("/metrics", headers={"accept": prometheus})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}  # type: ignore[no-untyped-call]
    assert families["outbox_messages_published"].type == "counter"
    assert families["http_requests"].type == "counter"
    plain = running_service.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain")
    assert "# EOF" not in plain.text


def test_the_processes_of_a_service_add_up_their_metrics_in_both_formats(database_url: str, tmp_path: Path) -> None:
    folder, port = tmp_path / "metrics", free_port()
    folder.mkdir()
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MIGRATE": "true", "OUTBOX_RUN": "api", "OUTBOX_EXAMPLE": "true"}
    command = ["-m", "uvicorn", "app:main", "--port", str(port), "--workers", "2"]
    with running(command, tmp_path, {**settings, "PROMETHEUS_MULTIPROC_DIR": str(folder)}) as process:
        both = Service(process, f"http://127.0.0.1:{port}")
        both.is_ready()
        for _ in range(10):
            both.place()
        order = {"handler": "/orders", "method": "POST", "status": "2xx"}
        plain = 'http_requests_total{handler="/orders",method="POST",status="2xx"}'
        # Each process counts a request after it has sent the answer.
        eventually_sync(lambda: _values(both.get("/metrics").text).get(plain) == 10)
        answer = both.get("/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"})
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}  # type: ignore[no-untyped-call]
        assert [each.value for each in families["http_requests"].samples if each.labels == order] == [10]
        # The verdict is on the installation, so it is neither added up nor there for each process.
        assert [(each.labels, each.value) for each in families["outbox_health_verdict"].samples] == [({}, 1)]


def _dead_letters(url: str) -> list[tuple[str, str]]:
    async def fetch() -> list[tuple[str, str]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch("select queue, cause from outbox_dead_letter")]
        finally:
            await connection.close()

    return asyncio.run(fetch())


# --- what concerns the HTTP side only ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with fresh_database(postgres_server.url) as name:
        url = with_database(postgres_server.url, name)
        settings = {"OUTBOX_DATABASE_URL": url, "OUTBOX_MIGRATE": "true", "OUTBOX_RUN": "api", "OUTBOX_METRICS_TOKEN": "s3cret"}
        with service(tmp_path_factory.mktemp("api"), settings) as running:
            yield running


def test_an_invalid_order_is_refused(api: Service) -> None:
    for order in ({}, {"customer": "ada", "sku": "book", "quantity": 0}, {"customer": "a\0b", "sku": "x", "quantity": 1}):
        assert httpx.post(f"{api.url}/orders", json=order).status_code == 422


def test_an_unknown_order_is_404(api: Service) -> None:
    assert api.get("/orders/00000000-0000-4000-8000-000000000000").status_code == 404


def test_an_api_without_relay_needs_no_broker_to_be_ready(api: Service) -> None:
    assert api.get("/outbox/health/ready").json()["parts"] == {"database": "ok", "schema": "ok", "server": "ok"}


def test_metrics_can_require_a_token(api: Service) -> None:
    assert api.get("/metrics").status_code == 401
    assert api.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert "http_requests_total" in api.get("/metrics", headers={"authorization": "Bearer s3cret"}).text


def test_the_root_redirects_to_the_documentation(api: Service) -> None:
    assert "Outbox" in httpx.get(api.url, follow_redirects=True).text


def test_a_process_that_does_not_serve_the_api_says_so(database_url: str, tmp_path: Path) -> None:
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MIGRATE": "true", "OUTBOX_RUN": "relay"}
    with service(tmp_path, settings) as relay_only:
        answer = httpx.post(f"{relay_only.url}/orders", json={"customer": "ada", "sku": "book", "quantity": 1})
        assert answer.status_code == 404
        assert "OUTBOX_RUN" in answer.text


def test_without_the_example_orders_are_404_and_its_tables_are_not_created(
    settings: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    with service(tmp_path, {**settings, "OUTBOX_EXAMPLE": ""}) as running:
        placed = httpx.post(f"{running.url}/orders", json={"customer": "ada", "sku": "book"}, timeout=60)
        assert (placed.status_code, "OUTBOX_EXAMPLE" in placed.text) == (404, True)
        assert not [path for path in running.get("/openapi.json").json()["paths"] if path.startswith("/orders")]
        assert "/orders" not in running.get("/docs").text
    assert asyncio.run(_example_tables(database_url)) == []


async def _example_tables(database_url: str) -> list[str]:
    connection = await asyncpg.connect(database_url)
    try:
        rows = await connection.fetch("select relname from pg_class where relname in ('orders', 'order_events')")
    finally:
        await connection.close()
    return [row["relname"] for row in rows]


def test_an_event_without_a_queue_is_unroutable_while_the_example_runs(running_service: Service, shared_database: str) -> None:
    async def publish() -> None:
        connection = await asyncpg.connect(shared_database)
        try:
            async with connection.transaction():
                await Publisher().publish(connection, "invoice.sent", {})
        finally:
            await connection.close()

    async def reason() -> str | None:
        connection = await asyncpg.connect(shared_database)
        try:
            found: str | None = await connection.fetchval(
                "select last_error from outbox_table where routing_key = 'invoice.sent'"
            )
            return found
        finally:
            await connection.close()

    running_service.ends_as(running_service.place(), "confirmed")
    asyncio.run(publish())
    eventually_sync(lambda: asyncio.run(reason()) == "unroutable")
