"""Secrets that messages carry, and that errors quote, are in no answer, no command's output, no log line, no metric."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from click.testing import CliRunner
from prometheus_client import REGISTRY, generate_latest

from outbox import MessageRelay, Publisher, Worker, consume
from outbox.cli import main
from outbox.postgres.pool import Pool, open_pool
from tests.admin.served import served
from tests.support import eventually
from tests.worker.support import running

SOON = 60.0

# How an error quotes a secret: with a key, or, as the message itself holds it, without any.
QUOTING: dict[str, Callable[[str], str]] = {
    "key": lambda secret: f"card_number: {secret} was declined",
    "bare": lambda secret: f"upstream refused {secret} of ann",
    "repr": lambda secret: f"no {secret!r} here",
    "json": lambda secret: f'sent {{"user": {{"password": "{secret}"}}}} in vain',
    "escaped": lambda secret: f"{json.dumps(json.dumps({'token': secret}))} is no good",
    "list": lambda secret: f"{{'tokens': ['a', '{secret}']}}",
    "header": lambda secret: f"> Authorization: Custom {secret}\n> Accept: */*",
    "url": lambda secret: f"GET https://ann:{quote(secret)}@bank.example/?api_key={secret} failed",
    "postgres": lambda secret: f"DETAIL:  Key (email, api_key)=(ann, {secret}) already exists.",
    "sqlalchemy": lambda secret: f"(DataError) no\n[SQL: insert into cards]\n[parameters: (1, '{secret}')]",
    "xml": lambda secret: f"<login><password>{secret}</password></login> is refused",
    "pair": lambda secret: f"[{{'name': 'cvv', 'value': '{secret}'}}]",
}
# Where the message itself carries it.
CARRYING: dict[str, Callable[[str], dict[str, Any]]] = {
    "body": lambda secret: {"body": {"card_number": secret, "note": f"it is {secret}"}},
    "nested": lambda secret: {"body": {"a": [{"credentials": {"list": [secret]}}]}},
    "json in a string": lambda secret: {"body": {"inner": json.dumps({"api_key": secret})}},
    "header": lambda secret: {"body": {}, "headers": {"x-api-key": secret}},
    "large": lambda secret: {"body": {"filling": "x" * 20_000, "password": secret}},
    "form": lambda secret: {"body": f"user=ann&password={secret}".encode()},
}
SECRETS = {(how, where): f"s3cret-{number}-Zq" for number, (how, where) in enumerate((h, w) for h in QUOTING for w in CARRYING)}


QUOTED: dict[str, str] = {}
"""By message: what its handler raises."""


@consume("order.failing", queue="failing", retry_delays=("0s",))
async def failing(body: bytes, tracking_ids: list[str]) -> None:
    refuse(QUOTED[tracking_ids[-1]])


def refuse(text: str) -> None:
    raise RuntimeError(text) from ValueError(text)


@pytest.fixture
def logged() -> list[str]:
    """The log lines of that."""
    return []


@pytest.fixture
async def dead(database: str, caplog: pytest.LogCaptureFixture, logged: list[str]) -> AsyncIterator[Pool]:
    """Every way of quoting with every way of carrying, each of them failed twice and dead."""
    caplog.set_level(logging.DEBUG, logger="outbox")
    QUOTED.clear()
    pool = await open_pool(database, size=2, application_name="tests")
    relay = MessageRelay(db_engine_url=database, broker=database)
    async with running(Worker(broker=database, db_engine_url=database, consumers=[failing])):
        relaying = asyncio.create_task(relay.run(handle_signals=False))
        async with pool.acquire() as connection, connection.transaction():
            for (how, where), secret in SECRETS.items():
                carried = CARRYING[where](secret)
                id_ = await Publisher().publish(connection, "order.failing", **carried)
                QUOTED[str(id_)] = QUOTING[how](secret)

        async def all_are_dead_letters() -> bool:
            count: int = await pool.fetchval("select count(*) from outbox_dead_letter")
            return count == len(SECRETS)

        await eventually(all_are_dead_letters, timeout=SOON)
        relay.stop()
        await relaying
    logged.extend(caplog.messages)
    yield pool
    await pool.close()


def shown(outputs: Mapping[str, str]) -> list[str]:
    """Which secret is in which output."""
    return [
        f"{name}: {how} of {where}"
        for name, text in outputs.items()
        for (how, where), secret in SECRETS.items()
        if secret in text
    ]


async def test_no_answer_of_the_api_shows_a_secret(dead: Pool, viewer: httpx.AsyncClient) -> None:
    outputs = {}
    paths = [
        "/dlq?limit=200",
        "/dlq?limit=200&facets=true",
        "/dlq/groups?limit=200",
        "/components",
        "/chains?limit=200",
        "/topology",
        "/asyncapi",
        "/stats",
    ]
    ids = [row["id"] for row in await dead.fetch("select id from outbox_dead_letter")]
    paths += [f"/dlq/{id_}" for id_ in ids]
    paths += [f"/chains/{id_}" for id_ in QUOTED]
    for path in paths:
        response = await viewer.get(path)
        assert response.status_code == 200, f"{path}: {response.text}"
        outputs[path] = response.text
    assert shown(outputs) == []
    assert len(ids) == len(SECRETS)


async def test_no_secret_can_be_searched(dead: Pool, viewer: httpx.AsyncClient) -> None:
    found = {}
    for secret in SECRETS.values():
        answer = await viewer.get("/dlq", params={"q": f'"{secret}"'})
        found[secret] = len(answer.json()["items"])
    assert not any(found.values()), {secret: count for secret, count in found.items() if count}
    assert (await viewer.get("/dlq", params={"q": "declined"})).json()["items"]
    indexed = await dead.fetchval("select string_agg(search::text || preview, ' ') from outbox_dead_letter")
    assert shown({"the index": indexed}) == []


async def test_no_log_line_no_metric_and_no_history_shows_a_secret(dead: Pool, logged: list[str]) -> None:
    lines = "\n".join(logged)
    history = await dead.fetchval("select string_agg(error_type || ' ' || error_message, ' ') from outbox_history")
    components = await dead.fetchval("select string_agg(component::text, ' ') from outbox_component component")
    outputs = {"log": lines, "metrics": generate_latest(REGISTRY).decode(), "history": history, "components": components}
    assert shown(outputs) == []
    assert "dead-lettered it" in lines
    assert "***" in lines
    assert "***" in history


@pytest.mark.usefixtures("no_settings_from_outside")
async def test_no_command_prints_a_secret(dead: Pool, database: str) -> None:
    ids = [str(row["id"]) for row in await dead.fetch("select id from outbox_dead_letter")]
    chain = await dead.fetchval("select message_id from outbox_dead_letter limit 1")
    details = [["dlq", "show", id_, *options] for id_ in ids for options in ([], ["--json"])]
    others = [
        ["dlq", "list", "--limit", "200"],
        ["dlq", "list", "--limit", "200", "--json"],
        ["dlq", "groups"],
        ["chain", chain],
        details[0],
    ]

    def run() -> dict[str, str]:
        outputs = {}

        def invoke(command: list[str], **environment: str) -> None:
            result = CliRunner().invoke(main, command, env=environment)
            assert result.exit_code == 0, f"{command}: {result.output}"
            outputs[" ".join([*environment, *command])] = result.output

        for command in others:
            invoke(command, OUTBOX_DATABASE_URL=database)
        with served(db_engine_url=database) as address:  # which builds the application once, not for each dead letter
            for command in details:
                invoke(command, OUTBOX_URL=address, OUTBOX_TOKEN="admin")
        return outputs

    assert shown(await asyncio.to_thread(run)) == []
