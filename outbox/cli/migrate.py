"""`outbox migrate` and `outbox token`: create the tables of Outbox, and tokens for the admin."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.options import RETENTION
from outbox.cli.output import echo
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.schema import migrate as migrate_database
from outbox.schema import schema_sql


@click.command(cls=Command)
@options.database
@click.option(
    "--destination",
    "destinations",
    multiple=True,
    help="Also create the table of this destination, such as kafka. May be given several times.",
)
@click.option("--sql", is_flag=True, help="Print the SQL and change nothing.")
def migrate(database_url: str | None, table_name: str, destinations: tuple[str, ...], *, sql: bool) -> None:
    """Creates the tables of Outbox, or upgrades them in place.

    This includes the tables of all destinations that exist. Safe to repeat, and safe to run from several processes at the same
    time.
    """
    if sql:
        echo(schema_sql(table_name, destinations))
        return
    if database_url is None:
        raise ConfigurationError("no database configured: set OUTBOX_DATABASE_URL, or give --database-url")
    asyncio.run(migrate_database(database_url, table_name, destinations))
    echo(f"The table {table_name} and the other tables of Outbox are ready for this release.")


@click.command(cls=Command)
@click.option("--name", required=True, help="Name of the token in the audit log: up to 100 letters, digits and .@+-_")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="viewer reads; operator also repairs, pauses, and reveals masked values; admin also deletes for good.",
)
@click.option("--valid", type=RETENTION, help="Validity in whole days, such as 90d.  [default: no expiry]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def token(name: str, role: str, *, valid: timedelta | None, as_json: bool) -> None:
    """Creates an admin token.

    Give the token to its user. It is not stored anywhere: if it is lost, create a new one. Add the entry, which contains no
    secret, to OUTBOX_ADMIN_TOKENS of every process that serves the admin. Separate entries with commas.
    """
    if find_spec("fastapi") is None:
        raise MissingExtraError(purpose="outbox token", extra="fastapi")
    from outbox.admin.principals import Role, new_token

    last_day = None if valid is None else datetime.now(UTC).date() + valid
    text, entry = new_token(name, Role(role), last_day=last_day)
    if as_json:
        echo(
            json.dumps({"token": text, "entry": str(entry), "name": name, "role": role, "last_day": last_day and str(last_day)})
        )
        return
    until = "" if last_day is None else f", valid until {last_day}"
    echo(f"Token of {name}{until}, shown only once:\n\n    {text}\n")
    echo(f"Add this entry to the service. Separate several entries with commas:\n\n    OUTBOX_ADMIN_TOKENS={entry}")
