"""`outbox pause` and `outbox resume`: a relay, a worker or a queue takes nothing new for a while."""

import asyncio
import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from outbox.cli import options
from outbox.cli.command import Command, Sentence
from outbox.cli.options import SECONDS
from outbox.errors import ConfigurationError, SchemaError

if TYPE_CHECKING:
    from outbox.postgres.pool import Connection
    from outbox.postgres.reporting.control import Pause

_SCOPES = ("relay", "worker", "queue")


class Until(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A moment, as `2030-01-31T12:00:00Z`, or a time from now."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """The moment, or the time from now, that `value` names."""
        if isinstance(value, datetime | timedelta):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return SECONDS.convert(value, param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} names no time zone: write {value}Z for UTC", param, ctx)
        return moment


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES), required=False)
@click.argument("name", default="")
@click.option("--reason", help="Why, for those who find it paused.")
@click.option("--until", type=Until(), help="When it ends by itself: a moment with its time zone, or a time from now.")
@options.database
def pause(
    scope: str | None,
    name: str,
    reason: str | None,
    until: datetime | timedelta | None,
    database_url: str | None,
    table_name: str,
) -> None:
    """Lets a relay, a worker or a queue take nothing new; without arguments, lists what is paused.

    NAME is that of a relay or worker, all of them if it is left out, or that of a queue. What is in hand is finished.
    """
    from outbox.postgres.reporting.control import Pause, PauseScope

    if scope is None:
        asyncio.run(_list(database_url, table_name))
        return
    end = datetime.now(UTC) + until if isinstance(until, timedelta) else until
    wanted = Pause(scope=PauseScope(scope), name=name, reason=reason, requested_by=_who(), until=end)
    asyncio.run(_pause(database_url, table_name, wanted))
    click.echo(f"{_words(scope, name)} will take nothing new{f' until {_time(end)}' if end else ''}.")


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES))
@click.argument("name", default="")
@options.database
def resume(scope: str, name: str, database_url: str | None, table_name: str) -> None:
    """Ends the pause of a relay, a worker or a queue. Another pause that covers it as well goes on."""
    if not asyncio.run(_resume(database_url, table_name, scope, name)):
        raise Sentence(f"{_words(scope, name)} was not paused in these words: `outbox pause` lists what is")
    click.echo(f"{_words(scope, name)} will go on.")


async def _pause(url: str | None, table_name: str, wanted: "Pause") -> None:
    from outbox.postgres.reporting.control import pause as ask

    async with _database(url, table_name) as (connection, schema):
        await ask(connection, wanted, schema=schema)


async def _resume(url: str | None, table_name: str, scope: str, name: str) -> bool:
    from outbox.postgres.reporting.control import resume as take_back

    async with _database(url, table_name) as (connection, schema):
        return await take_back(connection, scope, name, schema=schema)


async def _list(url: str | None, table_name: str) -> None:
    from outbox.postgres.reporting.control import pauses

    async with _database(url, table_name) as (connection, schema):
        found = await pauses(connection, schema=schema)
    for paused in found:
        told = [_words(paused.scope.value, paused.name)]
        told += [f"since {_time(paused.requested_at)}"] if paused.requested_at else []
        told += [f"until {_time(paused.until)}"] if paused.until else []
        told += [f"by {paused.requested_by}"] if paused.requested_by else []
        click.echo(", ".join(told) + (f": {paused.reason}" if paused.reason else ""))
    if not found:
        click.echo("Nothing is paused.")


@asynccontextmanager
async def _database(url: str | None, table_name: str) -> AsyncIterator[tuple["Connection", str | None]]:
    import asyncpg

    from outbox.postgres.pool import connect_to, unavailable_errors
    from outbox.postgres.schema.objects import outbox_table

    if url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    schema = outbox_table(table_name).schema
    with unavailable_errors("looking at the pauses"):
        async with connect_to(url, application_name="outbox pause")() as connection:
            try:
                yield connection, schema
            except asyncpg.UndefinedTableError as error:
                raise SchemaError("there is no table of pauses: create it with `outbox migrate`") from error


def _words(scope: str, name: str) -> str:
    if scope == "queue":
        return f"the queue {name}"
    return f"the {scope} {name}" if name else f"every {scope}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _who() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
