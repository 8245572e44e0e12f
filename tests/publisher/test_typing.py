"""Type checkers know which handles have to be awaited."""

import textwrap
from pathlib import Path

import pytest
from mypy import api

pytestmark = pytest.mark.slow

PROGRAM = """
from typing import Any, Awaitable
from typing_extensions import assert_type

import asyncpg
import psycopg
from asyncpg.pool import PoolConnectionProxy
from psycopg2.extensions import connection as OldConnection, cursor as OldCursor
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from outbox import OutboxMessage, Publisher
from outbox.publisher import BoundPublisher

publisher = Publisher()


async def awaited(
    a: AsyncSession,
    b: async_scoped_session[AsyncSession],
    c: AsyncConnection,
    d: asyncpg.Connection[asyncpg.Record],
    e: PoolConnectionProxy[asyncpg.Record],
    f: psycopg.AsyncConnection[Any],
    g: psycopg.AsyncCursor[Any],
    bound: BoundPublisher[AsyncSession],
) -> None:
    assert_type(publisher.publish(a, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(b, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(c, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(d, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(e, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(f, "key", {}), Awaitable[str | None])
    assert_type(publisher.publish(g, "key", {}), Awaitable[str | None])
    assert_type(await publisher.bulk_publish(a, [OutboxMessage("key", {})]), list[str | None])
    assert_type(await bound.publish("key", {}), str | None)
    assert_type(await bound.bulk_publish([OutboxMessage("key", {})]), list[str | None])


def at_once(
    a: Session,
    b: scoped_session[Session],
    c: Connection,
    d: psycopg.Connection[Any],
    e: psycopg.Cursor[Any],
    f: OldConnection,
    g: OldCursor,
    bound: BoundPublisher[Session],
) -> None:
    assert_type(publisher.publish(a, "key", {}), str | None)
    assert_type(publisher.publish(b, "key", {}), str | None)
    assert_type(publisher.publish(c, "key", {}), str | None)
    assert_type(publisher.publish(d, "key", {}), str | None)
    assert_type(publisher.publish(e, "key", {}), str | None)
    assert_type(publisher.publish(f, "key", {}), str | None)
    assert_type(publisher.publish(g, "key", {}), str | None)
    assert_type(publisher.bulk_publish(a, [OutboxMessage("key", {})]), list[str | None])
    assert_type(bound.publish("key", {}), str | None)


def refused(engine: Engine) -> None:
    publisher.publish(engine, "key", {})  # type: ignore[call-overload]
    publisher.publish("postgresql://", "key", {})  # type: ignore[call-overload]
"""


@pytest.mark.slow
def test_each_handle_has_the_right_type_of_answer(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    output, errors, status = api.run(["--strict", str(program)])
    assert (output.splitlines()[-1:], errors, status) == (["Success: no issues found in 1 source file"], "", 0), output
