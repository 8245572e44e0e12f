"""One text finds a message wherever it is, and what it has to do with."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from outbox.admin import queues, topology
from outbox.admin.verdict import routes as verdict
from outbox.cli import main as cli
from tests.admin.rows import deliver, insert


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, verdict, topology):
        monkeypatch.setattr(module, "MAX_AGE", timedelta(0))
        monkeypatch.setattr(module, "PATIENCE", None, raising=False)


async def found(client: httpx.AsyncClient, q: str, **parameters: Any) -> list[tuple[str, str]]:
    answer = await client.get("/search", params={"q": q, **parameters})
    assert answer.status_code == 200, answer.text
    assert answer.json()["incomplete"] == []
    return [(item["kind"], item["id"]) for item in answer.json()["items"]]


@pytest.fixture
async def trouble(connection: asyncpg.Connection) -> dict[str, str]:
    """A message in the outbox, one in a queue, one that was sent before, a dead letter and a worker."""
    waiting = await insert(connection, tracking_ids='["root-1", "mine-1"]')
    queued = await connection.fetchval(
        "insert into outbox_delivery (id, exchange, queue, message_id, routing_key, body, tracking_ids) "
        "overriding system value values (900, 'outbox', 'mail', 'queued-1', 'order.paid', '', '[\"queued-1\"]') returning id"
    )
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, routing_key) values ('sent', 'gone-1', 'gone-1', 'order.sent')"
    )
    dead = await connection.fetchval(
        "insert into outbox_dead_letter (id, source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, search) overriding system value values (800, "
        "'worker', 'outbox', 'mail', 'dead-1', 'order.paid', '', '[\"dead-1\"]', now(), 1, 'failed', 'shop.CardError', "
        "'the card of password=hunter2 was declined', '', to_tsvector('simple', 'the card was declined')) returning id"
    )
    consumer = '[{"queue": "mail", "binding_key": "order.*", "handler": "shop.mail.send"}]'
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers, activity, started_at, "
        "seen_at) values ('w', 'worker', 'mailer-1', 'web-1', 4711, '1', '5 s', $1, '{}', now(), now())",
        consumer,
    )
    return {"message": waiting, "delivery": str(queued), "dead_letter": str(dead)}


async def test_a_number_finds_rows_with_that_id(viewer: httpx.AsyncClient, trouble: dict[str, str]) -> None:
    for kind, number in trouble.items():
        assert (kind, number) in await found(viewer, number)
    assert await found(viewer, f"outbox-{trouble['message']}") == [("message", trouble["message"])]


@pytest.mark.usefixtures("trouble")
@pytest.mark.parametrize("id_", ["root-1", "mine-1", "queued-1", "gone-1", "dead-1"])
async def test_an_id_finds_its_message_everywhere(viewer: httpx.AsyncClient, id_: str) -> None:
    assert ("chain", id_) in await found(viewer, id_)


async def test_a_text_that_is_too_short_or_too_long_is_refused_in_characters(viewer: httpx.AsyncClient) -> None:
    for q, expected in (("", "at least 1 character, not 0"), ("x" * 301, "at most 300 characters, not 301")):
        answer = await viewer.get("/search", params={"q": q})
        assert (answer.status_code, answer.json()["detail"]) == (422, f"query.q: Value should have {expected}")


async def test_a_chain_is_found_in_the_state_of_all_its_messages(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, parent_id, routing_key, queue, attempt) values "
        "('processed', 'order', 'order', null, 'order.placed', 'mail', 1), ('died', 'pay', 'order', 'order', 'pay', 'pay', 1)"
    )
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, parent_id, routing_key) "
        "select 'sent', 'many-' || n, 'many-1', nullif('many-1', 'many-' || n), 'many' from generate_series(1, 101) as n"
    )
    for id_, detail in (("order", "dead"), ("pay", "dead"), ("many-7", "more than 100 messages")):
        items = (await viewer.get("/search", params={"q": id_})).json()["items"]
        assert [each["detail"] for each in items if each["kind"] == "chain"] == [detail]
    # Also if the one that is dead is not among the messages that are returned.
    short = (await viewer.get("/chains/order", params={"max_nodes": 1})).json()
    assert (short["state"], short["truncated"], len(short["nodes"])) == ("dead", True, 1)


@pytest.mark.usefixtures("trouble")
async def test_parts_of_names_and_words_of_errors_are_found(viewer: httpx.AsyncClient) -> None:
    assert await found(viewer, "SHOP send") == [("queue", "mail")]
    assert ("component", "w") in await found(viewer, "mailer")
    assert ("routing_key", "order.placed") in await found(viewer, "placed")
    assert await found(viewer, "declined card") == [("dead_letter", "800")]
    assert await found(viewer, "no such thing") == []
    [letter] = (await viewer.get("/search", params={"q": "declined"})).json()["items"]
    assert (letter["detail"], letter["queue"]) == ("open: the card of password=*** was declined", "mail")


async def test_a_value_in_a_body_finds_waiting_messages_unless_it_is_masked(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    body = b'{"order_id": "A-4711", "password": "hunter2"}'
    waiting = await insert(connection, body=body, tracking_ids='["w"]', send_after="1 hour")
    queued = await deliver(connection, message_id="q", body=body)
    await insert(connection, body=b"\xff A-4711", content_type="application/octet-stream")
    await insert(connection, body=b'{"order_id": "A-4711"}' + b" " * 20_000)
    assert await found(viewer, "A-4711") == [("message", waiting), ("delivery", queued)]
    assert await found(viewer, "hunter2") == []
    assert await found(viewer, "hunter") == [], "not even by its beginning"
    assert await found(viewer, "A-") == [], "too short to say anything"


async def test_a_number_is_also_searched_in_bodies(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    waiting = await insert(connection, body=b'{"order": 471199}', send_after="1 hour")
    await connection.execute(
        "insert into outbox_dead_letter (id, source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, search) overriding system value values (800, "
        "'worker', 'outbox', 'mail', 'dead-1', 'order.paid', '', '[]', now(), 1, 'failed', 'shop.CardError', '', '', "
        "to_tsvector('simple', 'order 471199'))"
    )
    assert await found(viewer, "471199") == [("message", waiting), ("dead_letter", "800")]


async def test_a_kind_that_cannot_be_searched_is_incomplete(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, trouble: dict[str, str]
) -> None:
    await connection.execute("alter table outbox_component rename to gone")
    answer = (await viewer.get("/search", params={"q": trouble["message"]})).json()
    assert ("message", trouble["message"]) in [(item["kind"], item["id"]) for item in answer["items"]]
    assert "component" in answer["incomplete"]
    await connection.execute("alter table gone rename to outbox_component")
    refused = await viewer.get("/search", params={"q": ""})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


@pytest.mark.usefixtures("trouble")
async def test_the_command_prints_what_was_found(database: str) -> None:
    async def run(*arguments: str) -> str:
        environment = {"OUTBOX_DATABASE_URL": database}
        answer = await asyncio.to_thread(CliRunner().invoke, cli, ["find", *arguments], env=environment)
        assert answer.exit_code == 0, answer.output
        return answer.output

    assert "outbox dlq show 800" in await run("declined card")
    assert json.loads(await run("dead-1", "--json"))["items"][0]["kind"] == "chain"
    assert "Nothing found." in await run("no such thing")


async def test_an_index_key_finds_the_chain_of_its_message(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, routing_key, queue, keys) values "
        "('sent', 'm-1', 'r-1', 'order.placed', null, '{A-4711}'), "
        "('processed', 'm-1', 'r-1', 'order.placed', 'mail', '{A-4711}'), "
        "('died', 'm-2', 'r-2', 'order.paid', 'books', '{A-4711,other}'), ('sent', 'm-3', 'r-3', 'order.paid', null, '{A-47}')"
    )
    assert sorted(await found(viewer, "A-4711")) == [("chain", "r-1"), ("chain", "r-2")]
    assert await found(viewer, "a-4711") == []
    answer = await viewer.get("/search", params={"q": "other"})
    [item] = answer.json()["items"]
    assert (item["title"], item["queue"], item["detail"]) == ("order.paid", "books", "a message with other was dead-lettered")


async def test_a_part_of_an_error_finds_its_dead_letter_unless_it_is_masked(
    viewer: httpx.AsyncClient, trouble: dict[str, str]
) -> None:
    assert ("dead_letter", trouble["dead_letter"]) in await found(viewer, "was decl")
    assert ("dead_letter", trouble["dead_letter"]) in await found(viewer, "cArDeRr")
    assert await found(viewer, "hunter") == []
