"""`outbox migrate` and `outbox token`: the tables of Outbox, and tokens for the admin."""

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
from outbox.schema import migrate as bring_up_to_date
from outbox.schema import schema_sql


@click.command(cls=Command)
@options.database
@click.option("--sql", is_flag=True, help="Print the SQL that does it, and change nothing.")
def migrate(database_url: str | None, table_name: str, *, sql: bool) -> None:
    """Creates the tables of Outbox, or upgrades them in place.

    Safe to repeat, and safe while several processes do it at once.
    """
    if sql:
        echo(schema_sql(table_name))
        return
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    asyncio.run(bring_up_to_date(database_url, table_name))
    echo(f"The table {table_name} and the other tables of Outbox are up to date.")


@click.command(cls=Command)
@click.option("--name", required=True, help="The name that the audit shows: up to 100 letters, digits and .@+-_")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="Permissions: view; also repair, pause and reveal what is masked; also delete for good.",
)
@click.option("--valid", type=RETENTION, help="How long it can be used, in whole days: 90d.  [default: until it is removed]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def token(name: str, role: str, *, valid: timedelta | None, as_json: bool) -> None:
    """Creates a token for the admin.

    Give the token to its user; it is stored nowhere, and a lost one is replaced by a new one. Add the entry, which holds no
    secret, to OUTBOX_ADMIN_TOKENS of every process that serves the admin; entries are separated by commas.
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
    echo(f"The token of {name}{until}, shown only once:\n\n    {text}\n")
    echo(f"Add this entry to the service, separated by commas from others:\n\n    OUTBOX_ADMIN_TOKENS={entry}")
