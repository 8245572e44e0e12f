"""`outbox migrate`: creates the tables, or upgrades them in place; `--sql` prints the statements instead."""

import asyncio

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.printing import echo
from outbox.errors import ConfigurationError
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
    echo(f"The table {table_name} and those beside it are there and up to date.")
