"""`outbox migrate`: creates the tables, or upgrades them in place; `--sql` prints the statements instead."""

import asyncio

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.errors import ConfigurationError
from outbox.postgres.names import TableName
from outbox.schema import ensure_outbox_schema_async, ensure_outbox_table_async


@click.command(cls=Command)
@options.database
@click.option("--sql", is_flag=True, help="Print the SQL that makes the tables in an empty schema, and change nothing.")
def migrate(database_url: str | None, table_name: str, *, sql: bool) -> None:
    """Creates the tables of Outbox, or upgrades them in place.

    Safe to repeat, and safe while several processes do it at once.
    """
    table = TableName.parse(table_name)
    if sql:
        click.echo(_script(table))
        return
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    asyncio.run(_ensure(database_url, table))
    click.echo(f"The table {table} and those beside it are there and up to date.")


async def _ensure(database_url: str, table: TableName) -> None:
    await ensure_outbox_schema_async(database_url, schema=table.schema)
    await ensure_outbox_table_async(database_url, str(table))


def _script(table: TableName) -> str:
    from outbox.postgres.schema import HEAD, VERSIONS
    from outbox.postgres.schema.stamps import stamp

    made = [statement for version in VERSIONS for statement in version.upgrade(table)]
    statements = ["begin", *made, *stamp(table.schema, HEAD), "commit"]
    return "\n\n".join(f"{statement.strip()};" for statement in statements)
