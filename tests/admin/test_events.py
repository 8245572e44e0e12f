"""`GET /events`: shared polling, reconnecting clients, and the end of streams."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from outbox.admin import Admin, Role, admin_router
from outbox.admin import events as broadcaster
from outbox.admin import events as listeners
from outbox.admin.events import Broadcaster, Listener
from outbox.admin.principals import new_token
from outbox.postgres.queries import TableName
from outbox.reporting.components import LiveStateReader
from outbox.reporting.pauses import Pause, PauseScope, pause
from tests.admin.support import PREFIX, ROLE_HEADER, principal_by_header
from tests.fastapi.support import client_of
from tests.support import eventually


class Stream:
    """The events that a client reads."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = response.headers
        self._lines = response.aiter_lines()
        self.last_id: str | None = None

    async def next(self, wanted: str | None = None) -> dict[str, Any]:
        """Returns the next event, or the next one of that name, with its data."""
        while True:
            event = await self._next()
            if wanted in (None, event["event"]):
                return event

    async def _next(self) -> dict[str, Any]:
        event: dict[str, Any] = {}
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line:
                event[name] = json.loads(value) if name == "data" else value
            elif "data" in event:
                self.last_id = event.get("id", self.last_id)
                return event
            else:
                event = {}
        raise EOFError


@asynccontextmanager
async def listening(client: httpx.AsyncClient, last_id: str | None = None) -> AsyncIterator[Stream]:
    """Opens an event stream for the block."""
    headers = {} if last_id is None else {"last-event-id": last_id}
    async with client.stream("GET", "/events", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response)


class Service:
    """An application with an admin, on a real server."""

    def __init__(self, admin: Admin, client: httpx.AsyncClient) -> None:
        self.admin = admin
        self.client = client

    @property
    def listeners(self) -> int:
        """Number of open streams."""
        return len(self.admin.shared(Broadcaster)._listeners)


@asynccontextmanager
async def service_of(admin: Admin, **options: Any) -> AsyncIterator[Service]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with admin:
            yield

    app = FastAPI(lifespan=lifespan)
    app.include_router(admin_router(admin, **options), prefix=PREFIX)
    async with client_of(app) as client:
        client.base_url = client.base_url.join(f"{PREFIX}/")
        client.headers[ROLE_HEADER] = Role.VIEWER.value
        yield Service(admin, client)


@pytest.fixture
async def service(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(broadcaster, "POLL_INTERVAL", timedelta(milliseconds=50))
    async with service_of(Admin(database, streams=3), authenticate=principal_by_header) as service:
        yield service


DEAD_LETTER = (
    "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, attempt,"
    " cause, exception_type, exception_message, exception_traceback)"
    " values ('worker', 'o', 'q', 'm', 'e', '', '[\"m\"]', now(), 1, 'exhausted', '', '', '')"
)


async def _polled(service: Service) -> None:
    """Waits for the first poll, which later polls compare with."""
    await eventually(lambda: service.admin.shared(Broadcaster)._values is not None)


async def test_the_backlog_is_that_of_all_destinations_whichever_relay_reported_last(
    service: Service, connection: asyncpg.Connection
) -> None:
    async def report(id_: str, activity: str) -> None:
        await connection.execute(
            "insert into outbox_component (id, kind, name, host, process_id, version, every, activity)"
            " values ($1, 'relay', $1, 'h', 1, '1', '5 s', $2)"
            " on conflict (id) do update set activity = excluded.activity, seen_at = clock_timestamp()",
            id_,
            activity,
        )

    async with listening(service.client) as stream:
        await _polled(service)
        async with connection.transaction():
            await report("old", '{"unsent": 900, "oldest_due_age_seconds": 90}')
            await report("one", '{"destination": "default", "unsent": 12, "oldest_due_age_seconds": null}')
            await report("other", '{"destination": "kafka", "unsent": 3, "oldest_due_age_seconds": 1.5}')
        assert (await stream.next("backlog"))["data"] == {"unsent": 15, "oldest_due_age_seconds": 1.5}
        await report("one", '{"destination": "default", "unsent": 12, "oldest_due_age_seconds": null}')
        await report("other", '{"destination": "kafka", "unsent": 4, "oldest_due_age_seconds": 1.5}')
        assert (await stream.next("backlog"))["data"] == {"unsent": 16, "oldest_due_age_seconds": 1.5}


async def test_a_stream_begins_with_a_reset_and_sends_changes(service: Service, connection: asyncpg.Connection) -> None:
    async with listening(service.client) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert (stream.headers["x-accel-buffering"], stream.headers["cache-control"]) == ("no", "no-store")
        first = await stream.next()
        assert (first["event"], first["data"]) == ("reset", {"reason": "the stream begins here"})
        await _polled(service)
        await connection.execute(DEAD_LETTER)
        letters = (await stream.next("dead_letters"))["data"]
        assert (letters["open"], letters["parked"]) == ({"value": 1, "relation": "eq"}, {"value": 0, "relation": "eq"})
        await pause(connection, Pause(scope=PauseScope.QUEUE, name="q"))
        assert (await stream.next("pauses"))["data"] == [{"scope": "queue", "name": "q", "expires_at": None}]
        beat = "insert into outbox_component (id, kind, name, host, process_id, version, every, activity) values"
        activity = '{"state": "running", "unsent": 12, "oldest_due_age_seconds": 1.5}'
        await connection.execute(f"{beat} ('r', 'relay', 'relay-1', 'h', 1, '1', '5 s', '{activity}')")
        assert (await stream.next("backlog"))["data"] == {"unsent": 12, "oldest_due_age_seconds": 1.5}
        component = (await stream.next("component"))["data"]
        assert (component["name"], component["status"], component["state"]) == ("relay-1", "alive", "running")
        await connection.execute("insert into outbox_operation (action, selector, total) values ('requeue', '{}', 5)")
        operation = (await stream.next("operation"))["data"]
        assert operation == {"id": "1", "action": "requeue", "state": "running", "item_count": 5, "settled_count": 0}
        await connection.execute("update outbox_operation set done = 3")
        assert (await stream.next("operation"))["data"]["settled_count"] == 3
        await connection.execute("delete from outbox_component")
        assert (await stream.next("component"))["data"]["status"] == "forgotten"


async def test_a_reconnecting_client_gets_the_missed_events_or_a_reset(
    service: Service, connection: asyncpg.Connection
) -> None:
    async with listening(service.client) as stream:
        await stream.next("reset")
        await _polled(service)
        await connection.execute(DEAD_LETTER)
        await stream.next("dead_letters")
        seen = stream.last_id
        await connection.execute("delete from outbox_dead_letter")
        missed = await stream.next("dead_letters")
    async with listening(service.client, seen) as stream:
        assert await stream.next() == missed
    assert seen is not None
    for unknown in ("0badcafe.3", f"{seen.partition('.')[0]}.99999", "nonsense", f"{seen}x"):
        async with listening(service.client, unknown) as stream:
            again = await stream.next()
            assert (again["event"], "no longer available" in again["data"]["reason"]) == ("reset", True)


async def test_a_reconnecting_client_gets_changes_made_without_listeners(
    service: Service, connection: asyncpg.Connection
) -> None:
    async with listening(service.client) as stream:
        await stream.next("reset")
        await _polled(service)
        last = stream.last_id
    await eventually(lambda: service.listeners == 0)
    task = service.admin.shared(Broadcaster)._task
    assert task is not None
    await eventually(task.done)
    await connection.execute(DEAD_LETTER)
    async with listening(service.client, last) as stream:
        assert (await stream.next())["event"] == "dead_letters"


async def test_streams_above_the_limit_are_refused_until_one_ends(service: Service) -> None:
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(listening(service.client)) for _ in range(3)]
        for stream in streams:
            await stream.next("reset")
        refused = await service.client.get("/events")
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "too_many_streams", "5")
    await eventually(lambda: service.listeners == 0)
    async with listening(service.client) as stream:
        await stream.next("reset")


async def test_many_clients_share_one_poll_and_without_clients_nothing_is_polled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = LiveStateReader.read

    async def counted(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        return await look(*arguments)

    monkeypatch.setattr(LiveStateReader, "read", counted)
    monkeypatch.setattr(broadcaster, "POLL_INTERVAL", timedelta(hours=1))
    async with listening(service.client) as one, listening(service.client) as other:
        await one.next("reset")
        await other.next("reset")
        await eventually(lambda: looks == 1)
        assert service.admin.pool.get_size() <= 1
    await eventually(lambda: service.listeners == 0)
    assert looks == 1


async def test_a_silent_stream_has_heartbeats_and_a_maximum_duration(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "HEARTBEAT", timedelta(milliseconds=20))
    monkeypatch.setattr(listeners, "MAX_DURATION", timedelta(seconds=3))
    async with listening(service.client) as stream:
        await stream.next("reset")
        for _ in range(3):
            assert await stream.next("heartbeat") == {"event": "heartbeat", "data": {}}
        with pytest.raises(EOFError):
            await stream.next("never")


def test_a_client_that_falls_behind_is_disconnected() -> None:
    listener = Listener("ann")
    for _ in range(listeners.MAX_WAITING):
        listener.send(b"event")
    assert not listener._ended
    listener.send(b"one too many")
    assert listener._ended
    assert not listener._waiting


async def test_a_stream_ends_with_its_session(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcaster, "POLL_INTERVAL", timedelta(milliseconds=50))
    token, entry = new_token("anna", Role.VIEWER)
    async with service_of(Admin(database, tokens=[str(entry)])) as service:
        await service.client.post("/session", json={"token": token})
        async with listening(service.client) as stream:
            await stream.next("reset")
            await _polled(service)
            out = await service.client.delete("/session", headers={"sec-fetch-site": "same-origin"})
            assert out.is_success, out.text
            with pytest.raises(EOFError):
                await stream.next("never")
        assert (await service.client.get("/events")).status_code == 401


async def test_an_unavailable_database_is_an_event_and_does_not_end_the_stream(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = LiveStateReader.read

    async def away(*_: Any) -> Any:
        raise ConnectionError("gone")

    async with listening(service.client) as stream:
        await stream.next("reset")
        await _polled(service)
        monkeypatch.setattr(LiveStateReader, "read", away)
        assert (await stream.next("database"))["data"] == {"available": False}
        monkeypatch.setattr(LiveStateReader, "read", look)
        assert (await stream.next("database"))["data"] == {"available": True}


async def test_streams_require_authentication(service: Service) -> None:
    del service.client.headers[ROLE_HEADER]
    assert (await service.client.get("/events")).status_code == 401
    assert service.listeners == 0


async def test_a_poll_uses_indexes(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at,"
        " attempt, cause, exception_type, exception_message, exception_traceback, status) select 'worker', 'o', 'q', 'm' || n,"
        " 'e', '', '[]', now(), 1, 'exhausted', '', '', '', case when n % 50 = 0 then 'open' else 'discarded' end"
        " from generate_series(1, 20000) as n"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body) select 'e', '' from generate_series(1, 20000);"
        " update outbox_dead_letter set resolved_at = now() where status <> 'open';"
        " insert into outbox_operation (action, selector) select 'requeue', '{}' from generate_series(1, 5000);"
        " analyze outbox_dead_letter; analyze outbox_operation; analyze outbox_table"
    )
    sql = LiveStateReader(TableName("outbox_table"))._sql
    for name, arguments in {"dead_letters": (10_001,), "operations": (20,), "sessions": ([b"a"],)}.items():
        plan = "\n".join(row[0] for row in await connection.fetch(f"explain {sql[name]}", *arguments))
        assert "Seq Scan on outbox_dead_letter" not in plan, plan
        assert "Seq Scan on outbox_table" not in plan, plan
        assert "Seq Scan on outbox_operation" not in plan, plan
        assert "Sort" not in plan, plan
