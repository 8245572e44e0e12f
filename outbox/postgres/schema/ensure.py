"""Bringing a database to the newest version of the schema, whatever it was before.

A plan is a generator: it yields one statement at a time and is sent the rows. It knows nothing of drivers, so sync and async
connections of any kind run the same one (`runners`), always within one transaction.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from outbox.errors import ConfigurationError, SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.schema.check import Difference, outbox_differences, satellite_differences
from outbox.postgres.schema.versions import (
    BEGIN_ALONE,
    END_ALONE,
    HEAD,
    IN_TRANSACTION,
    VERSIONS,
    WAIT_FOR_OTHERS,
    is_known,
    stamp,
    stamped_version,
    versions_after,
)

Rows = Sequence[Sequence[Any]]
Plan = Generator[str, Rows, None]

OLDEST_SERVER = 150000
"""PostgreSQL 15, as `server_version_num` counts."""


def ensure_table(table: TableName) -> Plan:
    """One outbox table with its doorbell, made, repaired, or upgraded from the predecessor's. Does nothing if all is there."""
    yield from _server_is_new_enough()
    if (yield from _differences([outbox_differences(table)])):
        yield from _alone(lambda: _change_table(table))


def ensure_schema(table: TableName) -> Plan:
    """Every table: the outbox table, and the others next to it. The same as `alembic upgrade head`."""
    yield from _server_is_new_enough()
    if (yield from _schema_lacks(table)):
        yield from _alone(lambda: _change_schema(table))


def _change_table(table: TableName) -> Plan:
    if not (yield from _differences([outbox_differences(table)])):
        return
    for version in VERSIONS:
        yield from _each(version.outbox_table(table))
    _all_is_there((yield from _differences([outbox_differences(table)])))


def _change_schema(table: TableName) -> Plan:
    if not (yield from _schema_lacks(table)):
        return
    stamped = yield from stamped_version(table.schema)
    # At the newest version already, and yet something is missing: every statement can be executed again.
    for version in versions_after(stamped) or VERSIONS:
        yield from _each(version.upgrade(table))
    yield from _each(stamp(table.schema, HEAD))
    _all_is_there((yield from _differences(_every_table(table))))


def _alone(change: Callable[[], Plan]) -> Plan:
    """Runs `change` while no other process changes any schema, and no lock is waited for without end."""
    yield BEGIN_ALONE
    if not (yield IN_TRANSACTION):
        raise ConfigurationError(
            "the connection is in autocommit mode: begin a transaction first, so that all or nothing is made"
        )
    yield from _each(WAIT_FOR_OTHERS)
    yield from change()
    yield END_ALONE


def _server_is_new_enough() -> Plan:
    ((version, name),) = yield "select current_setting('server_version_num')::integer, current_setting('server_version')"
    if version < OLDEST_SERVER:
        raise SchemaError(f"PostgreSQL 15 or newer is needed; this server is {name}")


def _schema_lacks(table: TableName) -> Generator[str, Rows, bool]:
    stamped = yield from stamped_version(table.schema)
    if not is_known(stamped):
        return False  # a newer release was here; what it keeps compatible is not ours to judge, and never ours to change
    return stamped != HEAD or bool((yield from _differences(_every_table(table))))


def _every_table(table: TableName) -> list[str]:
    return [outbox_differences(table), *satellite_differences(table.schema)]


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
