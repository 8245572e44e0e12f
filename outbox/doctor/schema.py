"""Compares the tables with those that this release creates, in a transaction that is rolled back."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

import asyncpg

from outbox.core.findings import Finding, Severity, error, warning, well
from outbox.postgres.names import TableName, quoted
from outbox.postgres.pool import Connection, roll_back_quietly
from outbox.postgres.queries import queries
from outbox.postgres.schema.check import Difference, outbox_differences, satellite_differences
from outbox.postgres.schema.objects import SATELLITES, VERSION_TABLE, outbox_names, satellite_names, table_names
from outbox.postgres.schema.versions import HEAD, VERSIONS

CHECK = "schema"
_MIGRATE = "run `outbox migrate`"
_VITAL = frozenset({"table", "column", "trigger"})


class _Part(NamedTuple):
    """A table, column, constraint, index, trigger, function or storage parameter."""

    table: str
    kind: str
    name: str


Shape = Mapping[_Part, str]


async def examine_schema(connection: Connection, table: TableName, schema: str) -> list[Finding]:
    """What differs between the tables in `schema` and those that this release would make; of another version, only that."""
    found = await _recorded_version(connection, schema)
    if any(finding.severity is Severity.ERROR for finding in found):
        return found  # tables of another version differ everywhere, and all of it has this one cause
    here = TableName(table.name, schema)
    try:
        wanted = await _wanted(connection, here)
    except asyncpg.InsufficientPrivilegeError:  # of a role that may not make tables to compare with
        found.append(well(CHECK, "compared by name only: a role that may create a schema sees the definitions, too"))
        for query in (outbox_differences(here), *satellite_differences(here.schema)):
            for lack in [Difference(*row) for row in await connection.fetch(query)]:
                found.append((error if lack.kind in _VITAL else warning)(CHECK, str(lack), _MIGRATE))
        return found
    actual = await _shape(connection, schema, here.name)
    missing = {part.table for part in wanted if part.kind == "table" and part not in actual}
    differences = [
        (error if name == here.name else warning)(CHECK, f"the table {name} is missing", _MIGRATE) for name in sorted(missing)
    ]
    differences += [
        _different(here, part, definition, actual.get(part))
        for part, definition in wanted.items()
        if part.table not in missing and actual.get(part) != definition
    ]
    return found + (differences or [well(CHECK, f"{len(wanted)} columns, constraints, indexes, triggers and parameters")])


async def _recorded_version(connection: Connection, schema: str) -> list[Finding]:
    place = f"{quoted(schema, kind='schema')}.{quoted(VERSION_TABLE)}"
    if await connection.fetchval("select pg_catalog.to_regclass($1) is null", place):
        return [warning(CHECK, "no schema version is recorded", _MIGRATE)]
    try:
        version = await connection.fetchval(f"select max(version_num) from {place}")
    except asyncpg.InsufficientPrivilegeError:
        return []
    if version == HEAD:
        return []
    if not any(known.number == version for known in VERSIONS):
        return [
            error(CHECK, f"the schema version {version} is not known to this release", "upgrade this installation of Outbox")
        ]
    return [error(CHECK, f"the schema has the version {version}, this release works with {HEAD}", _MIGRATE)]


async def _wanted(connection: Connection, table: TableName) -> Shape:
    """The shape of tables that are made for this purpose, and never committed."""
    scratch = f"outbox_doctor_{uuid4().hex[:12]}"
    await connection.execute("begin; set local client_min_messages = error")
    try:
        await connection.execute(f"create schema {quoted(scratch, kind='schema')}")
        for version in VERSIONS:
            for statement in version.upgrade(TableName(table.name, scratch)):
                await connection.execute(statement)
        return await _shape(connection, scratch, table.name)
    finally:
        await roll_back_quietly(connection)


async def _shape(connection: Connection, schema: str, outbox_table: str) -> Shape:
    function = outbox_names(TableName(outbox_table, schema))["publish_function_name"]
    names = {**table_names(TableName("outbox_table", schema)), **satellite_names(schema)}
    tables = [outbox_table, *SATELLITES.values()]
    rows = await connection.fetch(queries("doctor.sql", **names)["shape"], schema, tables, function)
    return {_Part(table, kind, name): definition for table, kind, name, definition in rows}


def _different(table: TableName, part: _Part, wanted: str, actual: str | None) -> Finding:
    what = f"the {part.kind} {part.name} of {part.table}"
    summary = f"{what} is missing" if actual is None else f"{what} is {_short(actual)}, not {_short(wanted)}"
    if part.kind == "storage":
        sql = f"alter table {table.beside(part.table)} set ({part.name} = {wanted})"
        return warning(
            "storage", summary.replace("storage", "parameter"), "set it: the table is written and emptied all day", sql
        )
    if part.kind == "index":
        drop = [] if actual is None else [f"drop index {table.beside(part.name)}"]
        # PostgreSQL puts an index next to its table. That of a partitioned table is made for its partitions, too.
        before, on, after = wanted.partition(" ON ")
        make = f"{before}{on}{quoted(table.schema or 'public', kind='schema')}.{after.removeprefix('ONLY ')}"
        hint = "without it the relay reads whole tables; make it while it is quiet"
        return warning(CHECK, summary, hint, *drop, make)
    severity = error if part.kind in _VITAL else warning
    return severity(CHECK, summary, _MIGRATE)


def _short(definition: str) -> str:
    text = " ".join(definition.split())
    return repr(text if len(text) <= 90 else f"{text[:87]}…")
