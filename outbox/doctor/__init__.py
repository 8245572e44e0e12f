"""The doctor: examines an installation, changes nothing, and lists findings with hints."""

import json
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import asyncpg

from outbox.core.findings import Finding, Severity, error, warning
from outbox.core.urls import ServerKind, server_kind
from outbox.doctor.database import Examination, examine_audit, examine_listening, examine_schema
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError, SchemaError
from outbox.postgres.pool import connect_to, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.postgres.schema.check import schema_of
from outbox.runtime.brokers import destination_of, own_database

if TYPE_CHECKING:
    from datetime import timedelta

    from outbox.engine.consumer import Consumer

_NAME = "outbox doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What is examined: the servers, and how relay and worker are to use them.

    `consumers` are compared with the broker's queues; `management_url` is RabbitMQ's HTTP API, which knows policies and
    bindings that AMQP does not tell. `consumer_timeout` is the broker's own, after which it closes a channel whose message
    was not settled. With `audit` every entry of the admin's audit is verified.
    """

    database_url: str
    consumer_timeout: "timedelta"
    broker_url: str | None = None
    listen_url: str | None = None
    management_url: str | None = None
    table_name: str = "outbox_table"
    exchange_name: str = "outbox"
    consumers: "Sequence[Consumer]" = ()
    lanes: int = 2
    prefetch_count: int = 10
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order in which they were made."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity:
        """The worst of them."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in (Severity.ERROR, Severity.WARNING) if severity in found), Severity.OK)

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that fix what SQL can fix."""
        return tuple(statement for finding in self.findings for statement in finding.sql)

    def as_json(self) -> str:
        """The report for programs."""
        return json.dumps({"worst": self.worst, "findings": [asdict(finding) for finding in self.findings]}, indent=2)


async def examine(installation: Installation) -> Report:
    """Looks at the database and the broker, a few seconds long. What cannot be reached is a finding, and nothing raises."""
    findings = await _guarded("database", _examine_database(installation))
    url = installation.broker_url
    if url is not None and server_kind(url) is ServerKind.AMQP:
        from outbox.doctor.rabbitmq import examine_rabbitmq

        examination = examine_rabbitmq(
            url,
            installation.consumers,
            exchange_name=installation.exchange_name,
            management_url=installation.management_url,
            consumer_timeout=installation.consumer_timeout,
        )
        findings += await _guarded("broker", examination)
    return Report(tuple(findings))


async def _guarded(check: str, examination: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await examination
    except (DatabaseUnavailableError, BrokerUnavailableError) as failure:
        return [error(check, f"it cannot be reached: {failure}", "see that it runs, and that address and password are right")]
    except OutboxError as failure:
        return [error(check, str(failure))]


async def _examine_database(installation: Installation) -> list[Finding]:
    from outbox.relay import BELL_CONNECTIONS, SPARE_CONNECTIONS

    connect = connect_to(installation.database_url, application_name=_NAME)
    table = TableName.parse(installation.table_name)
    # What one relay and one worker open at most, as `MessageRelay` and `Worker` size their pools.
    in_transactions = sum(bool(consumer.plan.resources) for consumer in installation.consumers)
    needed = installation.lanes + SPARE_CONNECTIONS + BELL_CONNECTIONS + in_transactions * installation.prefetch_count
    # Where a relay with these settings would send; None: the database that they name may be the outbox's own, or not.
    destination = None
    if installation.broker_url is None:
        destination = own_database(exchange_name=installation.exchange_name)
    elif server_kind(installation.broker_url) is not ServerKind.POSTGRES:
        destination = destination_of(installation.broker_url, exchange_name=installation.exchange_name)
    with unavailable_errors("examining the database"):
        async with connect() as connection:
            schema = await schema_of(connection, table)
            if schema is None:
                raise SchemaError(f"the table {table} does not exist: run `outbox migrate`")
            examination = Examination(connection, table, schema)
            findings: list[Finding] = []
            for look in (
                examination.server(),
                examine_schema(connection, table, schema),
                examination.settings(),
                examination.dead_rows(),
                examination.rights(worker=bool(installation.consumers)),
                examination.connections(needed=needed),
                examination.leftovers(),
                examination.relays(wanted=destination),
                *([examine_audit(connection, TableName(table.name, schema))] if installation.audit else []),
            ):
                try:
                    findings += await look
                except asyncpg.InsufficientPrivilegeError as refusal:
                    summary = f"something could not be looked at: {refusal}"
                    findings.append(warning("rights", summary, "examine as a role that may"))
    listen = installation.listen_url
    listening = connect if listen is None else connect_to(listen, application_name=_NAME)
    return [*findings, await examine_listening(listening)]
