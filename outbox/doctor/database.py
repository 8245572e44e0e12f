"""Examines the database: tables, settings, dead rows, old transactions, privileges, notifications, the audit log."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import uuid4

import asyncpg

from outbox.core.findings import Finding, Severity, error, warning, well
from outbox.postgres.audit import read_chain
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, reason_of, roll_back_quietly, unavailable_errors
from outbox.postgres.queries import TableName, queries, quoted
from outbox.postgres.relays import AGREE, destination_backlogs, disagreement, known_relays
from outbox.postgres.schema.check import Difference, check_transport_tables, outbox_differences, satellite_differences
from outbox.postgres.schema.ensure import OLDEST_SERVER
from outbox.postgres.schema.objects import (
    SATELLITES,
    VERSION_TABLE,
    destination_table,
    outbox_names,
    satellite_names,
    table_names,
)
from outbox.postgres.schema.versions import HEAD, VERSIONS, create_destination, destinations_of

CHECK = "schema"
_MIGRATE = "run `outbox migrate`"
_VITAL = frozenset({"table", "column", "trigger"})


class _SchemaObject(NamedTuple):
    """A table, column, constraint, index, trigger, function or storage parameter."""

    table: str
    kind: str
    name: str


Shape = Mapping[_SchemaObject, str]
"""Definitions of schema objects."""


async def examine_schema(connection: Connection, table: TableName, schema: str) -> list[Finding]:
    """Compares the tables in `schema`, also those of destinations, with those that this release creates.

    If the version differs, reports only that.
    """
    found = await _recorded_version(connection, schema)
    # Tables of another version differ in many places, all for this one reason.
    if any(finding.severity is Severity.ERROR for finding in found):
        return found
    here = TableName(table.name, schema)
    names = [name for (name,) in await connection.fetch(destinations_of(here))]
    children = {destination_table(here, name): f"run `outbox migrate --destination {name}`" for name in names}
    for row in await connection.fetch(queries("doctor.sql", **table_names(here), **satellite_names(schema))["detached"]):
        summary = f"the table {row['name']} does not inherit from {here.name}: no list, number or alert includes its messages"
        hint = f"if it is that of a destination, let it inherit, then {_MIGRATE}"
        sql = f"alter table {here.sibling(row['name'])} inherit {here.sql}"
        found.append(error(CHECK, summary, hint, sql))
    try:
        wanted = await _expected_shape(connection, here, list(children))
    # The role may not create the tables to compare with, or the server is read-only.
    except (asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError):
        found.append(well(CHECK, "compared by name only: to compare definitions, too, use a role that may create a schema"))
        comparisons = [(query, "", _MIGRATE) for query in (outbox_differences(here), *satellite_differences(here.schema))]
        comparisons += [(outbox_differences(child), f" in {child.name}", hint) for child, hint in children.items()]
        for query, where, hint in comparisons:
            for difference in [Difference(*row) for row in await connection.fetch(query)]:
                found.append((error if difference.kind in _VITAL else warning)(CHECK, f"{difference}{where}", hint))
        return found
    actual = await _shape(connection, [here, *children])
    missing = {each.table for each in wanted if each.kind == "table" and each not in actual}
    differences = [
        (error if name == here.name else warning)(CHECK, f"the table {name} is missing", _MIGRATE) for name in sorted(missing)
    ]
    repairs = {child.name: hint for child, hint in children.items()}
    differences += [
        _difference(here, each, definition, actual.get(each), repairs.get(each.table, _MIGRATE))
        for each, definition in wanted.items()
        if each.table not in missing and actual.get(each) != definition
    ]
    return found + (differences or [well(CHECK, f"{len(wanted)} columns, constraints, indexes, triggers and parameters")])


async def _recorded_version(connection: Connection, schema: str) -> list[Finding]:
    version_table = f"{quoted(schema, kind='schema')}.{quoted(VERSION_TABLE)}"
    if await connection.fetchval("select pg_catalog.to_regclass($1) is null", version_table):
        return [warning(CHECK, "no schema version is recorded", _MIGRATE)]
    try:
        version = await connection.fetchval(f"select max(version_num) from {version_table}")
    except asyncpg.InsufficientPrivilegeError:
        return []
    if version == HEAD:
        return []
    if not any(known.number == version for known in VERSIONS):
        return [error(CHECK, f"this release does not know the schema version {version}", "upgrade this installation of Outbox")]
    return [error(CHECK, f"the schema has version {version}, but this release needs {HEAD}", _MIGRATE)]


async def _expected_shape(connection: Connection, table: TableName, children: Sequence[TableName]) -> Shape:
    """Shape of the tables of this release, and of destinations, created in a scratch schema and rolled back."""
    scratch = f"outbox_doctor_{uuid4().hex[:12]}"
    await connection.execute("begin; set local client_min_messages = error")
    try:
        await connection.execute(f"create schema {quoted(scratch, kind='schema')}")
        outbox, *others = (TableName(each.name, scratch) for each in (table, *children))
        for version in VERSIONS:
            for statement in version.upgrade(outbox):
                await connection.execute(statement)
        for child in others:
            await connection.execute(create_destination(outbox, child))
            for version in VERSIONS:
                for statement in version.outbox_table(child):
                    await connection.execute(statement)
        return await _shape(connection, [outbox, *others])
    finally:
        await roll_back_quietly(connection)


async def _shape(connection: Connection, outbox_tables: Sequence[TableName]) -> Shape:
    """Shape of the outbox table and of those of destinations, and of all other tables next to them."""
    schema = outbox_tables[0].schema
    names = {**table_names(TableName("outbox_table", schema)), **satellite_names(schema)}
    tables = [*(each.name for each in outbox_tables), *SATELLITES.values()]
    functions = [outbox_names(each)["publish_function_name"] for each in outbox_tables]
    rows = await connection.fetch(queries("doctor.sql", **names)["shape"], schema, tables, functions)
    return {_SchemaObject(table, kind, name): definition for table, kind, name, definition in rows}


def _difference(table: TableName, part: _SchemaObject, wanted: str, actual: str | None, advice: str) -> Finding:
    what = f"the {part.kind} {part.name} of {part.table}"
    summary = f"{what} is missing" if actual is None else f"{what} is {_short(actual)}, not {_short(wanted)}"
    if part.kind == "storage":
        sql = f"alter table {table.sibling(part.table)} set ({part.name} = {wanted})"
        return warning(
            "storage",
            summary.replace("storage", "parameter"),
            "set it: rows of this table are inserted and deleted all the time",
            sql,
        )
    if part.kind == "index":
        drop = [] if actual is None else [f"drop index {table.sibling(part.name)}"]
        # The table needs its schema, while the index is created in the same one. Without `ONLY` the index of a partitioned
        # table is created on its partitions, too.
        before, on, after = wanted.partition(" ON ")
        make = f"{before}{on}{quoted(table.schema or 'public', kind='schema')}.{after.removeprefix('ONLY ')}"
        hint = "without it the relay scans whole tables; create it at a time of low load"
        return warning(CHECK, summary, hint, *drop, make)
    severity = error if part.kind in _VITAL else warning
    return severity(CHECK, summary, advice)


def _short(definition: str) -> str:
    text = " ".join(definition.split())
    return repr(text if len(text) <= 90 else f"{text[:87]}…")


PINNED_FOR = timedelta(minutes=5)
"""Age at which an open transaction is reported: vacuum cannot remove rows that were relayed since it began."""
MAX_DEAD_ROWS = 100_000
"""Number of dead rows above which a table is reported, if they outnumber the live ones."""
CLOCK_TOLERANCE = timedelta(seconds=2)
_HOT = ("delivery", "dead_letter", "inbox", "history_default")
_WANTED_SETTINGS = {
    "autovacuum": ("on", "dead rows are never removed, and every claim has to skip them"),
    "track_counts": ("on", "autovacuum does not know which tables need it"),
    "fsync": ("on", "committed data is lost when the machine crashes"),
    "full_page_writes": ("on", "committed data may be damaged when the machine crashes"),
    "synchronous_commit": (None, "committed messages, sent or unsent, may be lost when the server crashes"),
}
_RELAYS = "relay", "a relay's transaction while it waits for the broker"
_LIMITS = (
    ("statement_timeout", *_RELAYS),
    ("transaction_timeout", *_RELAYS),
    ("idle_in_transaction_session_timeout", "worker", "a handler's transaction while the handler waits for something else"),
)


class Examination:
    """Examines one installation through one connection, outside a transaction."""

    def __init__(self, connection: Connection, table: TableName, schema: str) -> None:
        self._connection = connection
        self._table = TableName(table.name, schema)
        self._schema = schema
        self._sql = queries("doctor.sql", **table_names(self._table), **satellite_names(schema))

    async def server(self) -> list[Finding]:
        """Checks version, encoding and clock of the server."""
        asked = time.time()
        row = await self._connection.fetchrow(self._sql["server"])
        assert row is not None  # noqa: S101 — the query has no where
        findings = [well("server", f"PostgreSQL {row['version']}, database {row['database']}, as {row['role']}")]
        if row["version_number"] < OLDEST_SERVER:
            findings.append(error("server", f"PostgreSQL {row['version']} is too old", "PostgreSQL 15 or newer is needed"))
        if row["read_only"]:
            findings.append(
                error(
                    "server",
                    "the database is read-only: a standby, or default_transaction_read_only is on",
                    "relays and workers need the primary: correct the address",
                )
            )
        if row["encoding"] != "UTF8":
            findings.append(
                warning(
                    "server",
                    f"the database's encoding is {row['encoding']}",
                    "messages with other characters are refused: use UTF8",
                )
            )
        # The server read its clock somewhere in between: the middle is at most half a round trip away from it.
        skew = row["clock"] - (asked + time.time()) / 2
        if abs(skew) > CLOCK_TOLERANCE.total_seconds():
            findings.append(
                warning(
                    "server",
                    f"its clock differs from this machine's by {skew:+.1f} s",
                    "synchronize both by NTP: ages and timestamps compare them",
                )
            )
        return findings

    async def settings(self, *, transactions: bool) -> list[Finding]:
        """Checks settings of the server, database or role that endanger committed messages or their throughput.

        `transactions`: handlers run in transactions, for which only the server sets limits.
        """
        rows = await self._connection.fetch(self._sql["settings"], [*_WANTED_SETTINGS, *(name for name, *_ in _LIMITS)])
        found: dict[str, str] = {row["name"]: row["setting"] for row in rows}
        findings = []
        for name, (wanted, consequence) in _WANTED_SETTINGS.items():
            if found[name] == "off" and (wanted or name == "synchronous_commit"):
                severity = error if name in ("fsync", "autovacuum") else warning
                sql = f"alter system set {name} = {wanted or 'on'}"
                findings.append(severity("settings", f"{name} is {found[name]}: {consequence}", "turn it on", sql))
        findings += [
            warning(
                "settings",
                f"{name} is {found[name]} ms, which ends {ends}",
                f"set a longer one for the {component}'s role",
                f"alter role current_user set {name} = 0",
            )
            for name, component, ends in _LIMITS
            if (transactions or component == "relay") and 0 < int(found.get(name, 0)) < _SHORT_LIMIT
        ]
        return findings or [well("settings", "autovacuum and durability are on, and no timeout is too short")]

    async def dead_rows(self) -> list[Finding]:
        """Finds tables with more dead rows than live ones, and what keeps vacuum from removing them."""
        names = [*await self._outbox_tables(), *(SATELLITES[kind] for kind in _HOT if kind in SATELLITES)]
        findings = [
            warning(
                "dead rows",
                f"{row['name']} has {row['dead']:,} dead rows and {row['live']:,} live ones",
                "find out what keeps autovacuum from removing them (see below), then vacuum",
                f"vacuum (verbose) {self._table.sibling(row['name'])}",
            )
            for row in await self._connection.fetch(self._sql["dead_rows"], self._schema, names)
            if row["dead"] > max(MAX_DEAD_ROWS, row["live"])
        ]
        pinned = []
        for row in await self._connection.fetch(self._sql["pinning"], PINNED_FOR):
            since = timedelta(seconds=round(row["seconds"]))
            what = f"the {row['kind']} {row['name']} has been open for {since} ({row['what']})"
            hint = "end it: until then dead rows cannot be removed, and claims have to skip them"
            pinned.append(warning("pinned rows", what, hint, row["fix"]))
        pinned += [
            warning(
                "pinned rows",
                f"the unused replication slot {row['name']} keeps the dead rows of {row['transactions']:,} transactions",
                "use it, or drop it",
                f"select pg_drop_replication_slot('{row['name']}')",
            )
            for row in await self._connection.fetch(self._sql["slots"])
        ]
        if not pinned:
            sees_all = await self._connection.fetchval(self._sql["sees_all"])
            whose = "" if sees_all else " that this role may see without pg_read_all_stats"
            summary = f"no transaction{whose} has been open for more than {PINNED_FOR // timedelta(minutes=1)} minutes"
            pinned = [well("pinned rows", summary)]
        return findings + pinned

    async def rights(self, *, worker: bool, handover: bool) -> list[Finding]:
        """Finds privileges that this role lacks for relays of all destinations, and with `worker` for a worker, too.

        `handover`: the queues of the default destination are in this database.
        """
        needed = [(name, right) for name in await self._outbox_tables() for right in ("select", "update", "delete")]
        needed += [(SATELLITES["relay"], right) for right in ("select", "insert", "update", "delete")]
        if handover:
            needed += [(SATELLITES["subscription"], "select"), (SATELLITES["delivery"], "insert")]
        if worker:
            needed += [(self._table.name, "insert")]
            needed += [(SATELLITES[kind], right) for kind, rights in _WORKERS_RIGHTS.items() for right in rights]
        names, privileges = map(list, zip(*dict.fromkeys(needed), strict=True))
        lacking: dict[str, list[str]] = {}
        for row in await self._connection.fetch(self._sql["lacking_rights"], self._schema, names, privileges):
            lacking.setdefault(row["name"], []).append(row["privilege"])
        role = await self._connection.fetchval("select quote_ident(current_user)")
        return [
            # Without the record of relays, a relay works, but one that sends elsewhere goes unnoticed.
            (warning if name == SATELLITES["relay"] else error)(
                "rights",
                f"this role may not {', '.join(sorted(rights))} in {name}",
                "grant it",
                f"grant {', '.join(sorted(rights))} on {self._table.sibling(name)} to {role}",
            )
            for name, rights in lacking.items()
        ] or [well("rights", f"this role has the privileges for a relay{' and a worker' if worker else ''}")]

    async def _outbox_tables(self) -> list[str]:
        """The names of the outbox table and of the tables of destinations."""
        names = [name for (name,) in await self._connection.fetch(destinations_of(self._table))]
        return [self._table.name, *(destination_table(self._table, name).name for name in names)]

    async def connections(self, *, needed: int) -> list[Finding]:
        """Checks whether the server has room for `needed` more connections."""
        row = await self._connection.fetchrow(self._sql["connections"])
        assert row is not None  # noqa: S101 — the query has no where
        free = row["room"] - row["used"]
        summary = f"{row['used']} of {row['room']} are used; a relay and a worker with these settings take up to {needed}"
        findings = [
            warning("connections", f"the {what} has a limit of {limit}", f"they need {needed}")
            for what, limit in (("role", row["role_limit"]), ("database", row["database_limit"]))
            if limit is not None and 0 <= limit < needed
        ]
        if free < needed:
            advice = "raise max_connections, use fewer lanes or a smaller prefetch, or a pooler in transaction mode"
            return [*findings, warning("connections", summary, advice)]
        return findings or [well("connections", summary)]

    async def leftovers(self) -> list[Finding]:
        """Finds work that waits for an operator."""
        findings = []
        parked = await self._connection.fetchval(self._sql["parked"])
        if parked:
            findings.append(
                warning(
                    "messages",
                    f"{_count(parked)} message{'s' * (parked != 1)} could not be sent, parked by the relay",
                    "see `outbox dlq list --source relay`",
                )
            )
        try:
            strays = await self._connection.fetchval(self._sql["strays"])
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
            strays = 0
        if strays:
            findings.append(
                warning(
                    "history",
                    f"the default partition holds facts ({_count(strays)}) of days without a partition",
                    "run maintenance (`outbox maintain`), which moves them",
                )
            )
        return findings

    async def relays(self, *, wanted: str | None) -> list[Finding]:
        """Checks that each destination has a relay, and that its relays agree: the default ones on `wanted`, if it is known."""
        backlogs = await destination_backlogs(self._connection, self._table)
        findings = [
            error(
                "relays",
                f"no relay serves the destination {each.name!r}, for which {each.unsent:,} messages wait",
                f"start one: `outbox relay --destination {each.name}` with the URL of its broker",
            )
            for each in backlogs
            if each.unsent and not each.served
        ]
        # The first one is the default destination, see below.
        others = [disagreement(each.relays or ()) for each in backlogs[1:]]
        findings += [error("relays", problem, AGREE) for problem in others if problem is not None]
        relays = await known_relays(self._connection, self._table)
        if (problem := disagreement(relays)) is not None:
            return [*findings, error("relays", problem, AGREE)]
        running = [relay for relay in relays if not relay.refused]
        elsewhere = [relay for relay in running if wanted is not None and relay.destination != wanted]
        if elsewhere:
            text = f"the relay {elsewhere[0].name} sends to {elsewhere[0].destination}, but these settings name {wanted}"
            advice = "run the doctor with the relay's OUTBOX_BROKER_URL and OUTBOX_EXCHANGE_NAME, or correct them"
            findings.append(warning("relays", text, advice))
        elif running:
            findings.append(well("relays", f"all running relays ({len(running)}) send to {running[0].destination}"))
        return findings


_SHORT_LIMIT = 15_000
_WORKERS_RIGHTS = {
    "subscription": ("select", "insert", "update"),
    "delivery": ("select", "insert", "update", "delete"),
    "dead_letter": ("select", "insert", "update"),
    "edition": ("select",),
    "operation": ("select",),
    "operation_item": ("select", "update"),
    "inbox": ("select", "insert"),
}


def _count(number: int) -> str:
    return f"{number:,}" if number < 10_000 else "10,000 or more"


LISTEN_TIMEOUT = timedelta(seconds=3)
_CHECK = "listen"


async def examine_listening(connect: Connect) -> Finding:
    """Checks that a notification from one connection arrives at another, as a relay does when it starts."""
    channel, heard = f"outbox_doctor_{secrets.token_hex(8)}", asyncio.Event()
    try:
        # From another connection: behind a pooler, a connection may hear its own notification by chance.
        async with connect() as listener, connect() as sender, asyncio.timeout(LISTEN_TIMEOUT.total_seconds()):
            await listener.add_listener(channel, lambda *_: heard.set())
            await sender.execute("select pg_catalog.pg_notify($1, '')", channel)
            await heard.wait()
    except TimeoutError:
        return warning(
            _CHECK,
            "notifications do not arrive (a pooler in transaction mode?): relays poll",
            "set OUTBOX_LISTEN_URL to a direct address of the database",
        )
    except DRIVER_ERRORS as failure:
        return warning(_CHECK, f"listening failed: {reason_of(failure)}", "relays poll until it works")
    return well(_CHECK, "notifications arrive")


async def examine_queues(connect: Connect, table: TableName) -> list[Finding]:
    """Checks the tables of queues that are in another database than the outbox. Raises `SchemaError`."""
    with unavailable_errors("examining the queues"):
        async with connect() as connection:
            schema = await check_transport_tables(connection, table)
    return [well("broker", f"PostgreSQL, with the tables of the queues in the schema {schema}")]


_BACKUP = "compare with a backup, and review which roles may write to the table"


async def examine_audit(connection: Connection, table: TableName) -> list[Finding]:
    """Verifies the hash chain of all audit entries."""
    chain = await read_chain(connection, table)
    findings = []
    if chain.changed is not None:
        findings.append(error("audit", f"entry {chain.changed} was changed after it was written, and perhaps others", _BACKUP))
    if chain.unlinked is not None:
        findings.append(error("audit", f"entries before entry {chain.unlinked} were deleted", _BACKUP))
    if chain.unchained is not None:
        advice = "restart processes of the previous release; if there are none, review which roles may write to the table"
        findings.append(warning("audit", f"entry {chain.unchained} was written without a hash, and perhaps others", advice))
    if not findings:
        last = f", the last is {chain.last_id} with the hash {chain.last_hash}" if chain.entries else ""
        findings.append(well("audit", f"{chain.entries:,} entries are chained and unchanged{last}"))
    return findings
