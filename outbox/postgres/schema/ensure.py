"""Bringing a database to the newest version of the schema, whatever it was before.

A plan is a generator: it yields one statement at a time and is sent the rows. It knows nothing of drivers, so sync and async
connections of any kind run the same one (`runners`), always within one transaction.
"""

from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any

from outbox.errors import ConfigurationError, SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.schema.objects import OUTBOX_TABLE
from outbox.postgres.schema.shape import Difference, outbox_differences, satellite_differences
from outbox.postgres.schema.stamps import stamp, stamped_version
from outbox.postgres.schema.versions import HEAD, VERSIONS, is_known, versions_after

Rows = Sequence[Sequence[Any]]
Plan = Generator[str, Rows, None]

OTHERS_TIMEOUT = timedelta(minutes=5)
"""Longest wait for another process that is changing the schema; it may be rewriting a large table."""
LOCK_TIMEOUT = timedelta(seconds=10)
"""Longest wait for a lock on a table. Whoever wants the table meanwhile waits behind us, so it is not long."""
OLDEST_SERVER = 150000
"""PostgreSQL 15, as `server_version_num` counts."""
_ADVISORY_LOCK = 0x6F7574626F78  # "outbox"


def ensure_table(table: TableName) -> Plan:
    """One outbox table with its doorbell, made, repaired, or upgraded from the predecessor's. Does nothing if all is there."""
    yield from _server_is_new_enough()
    if (yield from _differences([outbox_differences(table)])):
        yield from _alone(lambda: _change_table(table))


def ensure_schema(schema: str | None = None) -> Plan:
    """Every table, in `schema` or where tables are created; the same as `alembic upgrade head`."""
    yield from _server_is_new_enough()
    if (yield from _schema_lacks(schema)):
        yield from _alone(lambda: _change_schema(schema))


def _change_table(table: TableName) -> Plan:
    if not (yield from _differences([outbox_differences(table)])):
        return
    for version in VERSIONS:
        yield from _each(version.outbox_table(table))
    _all_is_there((yield from _differences([outbox_differences(table)])))


def _change_schema(schema: str | None) -> Plan:
    if not (yield from _schema_lacks(schema)):
        return
    table = TableName(OUTBOX_TABLE, schema)
    stamped = yield from stamped_version(schema)
    # At the newest version already, and yet something is missing: every statement can be executed again.
    for version in versions_after(stamped) or VERSIONS:
        yield from _each(version.upgrade(table))
    yield from _each(stamp(schema, HEAD))
    _all_is_there((yield from _differences(_every_table(schema))))


def _alone(change: Callable[[], Plan]) -> Plan:
    """Runs `change` while no other process changes any schema, and no lock is waited for without end."""
    ((before,),) = yield "select current_setting('lock_timeout')"
    yield "set local outbox.changing_schema = 'yes'"
    if not (yield "select 1 where current_setting('outbox.changing_schema', true) = 'yes'"):
        raise ConfigurationError(
            "the connection is in autocommit mode: begin a transaction first, so that all or nothing is made"
        )
    yield _lock_timeout(OTHERS_TIMEOUT)
    yield f"select pg_advisory_xact_lock({_ADVISORY_LOCK})"
    yield _lock_timeout(LOCK_TIMEOUT)
    yield from change()
    yield f"set local lock_timeout = '{before}'"


def _server_is_new_enough() -> Plan:
    ((version, name),) = yield "select current_setting('server_version_num')::integer, current_setting('server_version')"
    if version < OLDEST_SERVER:
        raise SchemaError(f"PostgreSQL 15 or newer is needed; this server is {name}")


def _schema_lacks(schema: str | None) -> Generator[str, Rows, bool]:
    stamped = yield from stamped_version(schema)
    if stamped is not None and not is_known(stamped):
        return False  # a newer release was here; what it keeps compatible is not ours to judge, and never ours to change
    return stamped != HEAD or bool((yield from _differences(_every_table(schema))))


def _every_table(schema: str | None) -> list[str]:
    return [outbox_differences(TableName(OUTBOX_TABLE, schema)), *satellite_differences(schema)]


def _differences(queries: Sequence[str]) -> Generator[str, Rows, list[Difference]]:
    found: list[Difference] = []
    for query in queries:
        found += [Difference(*row) for row in (yield query)]
    return found


def _all_is_there(differences: Sequence[Difference]) -> None:
    if differences:
        raise SchemaError(f"the schema could not be repaired: {'; '.join(map(str, differences))}")


def _each(statements: Sequence[str]) -> Plan:
    # Not `yield from`: the rows that a plan is sent would go to the tuple.
    for statement in statements:  # noqa: UP028
        yield statement


def _lock_timeout(limit: timedelta) -> str:
    return f"set local lock_timeout = {limit // timedelta(milliseconds=1)}"
