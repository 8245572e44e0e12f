"""The doctor: examines an installation and lists findings with hints. Changes nothing."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import asyncpg

from outbox.core.findings import Finding, Severity, error, warning, well
from outbox.core.urls import ServerKind, kafka_topic, nats_subject, server_kind
from outbox.doctor.database import Examination, examine_audit, examine_listening, examine_queues, examine_schema
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError, SchemaError, TopologyError
from outbox.postgres.pool import connect_to, reason_of, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.postgres.schema.check import schema_of
from outbox.runtime.brokers import destination_of, own_database, unkept

if TYPE_CHECKING:
    from datetime import timedelta

    from outbox.engine.consumer import Consumer

_NAME = "outbox doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The installation to examine: its servers, and the settings of its relay and worker.

    `consumers` are compared with the broker's queues; `management_url` is RabbitMQ's HTTP API, which shows policies and
    bindings that AMQP does not. `consumer_timeout` is the broker's limit, after which it closes the channel of an unsettled
    message. With `audit`, every entry of the admin's audit log is verified.
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
    """All findings, in the order of the checks."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity:
        """Severity of the worst finding."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in (Severity.ERROR, Severity.WARNING) if severity in found), Severity.OK)

    @property
    def sql(self) -> tuple[str, ...]:
        """SQL statements that fix findings."""
        return tuple(statement for finding in self.findings for statement in finding.sql)

    def as_json(self) -> str:
        """Returns the report as JSON."""
        return json.dumps({"worst": self.worst, "findings": [asdict(finding) for finding in self.findings]}, indent=2)


async def examine(installation: Installation) -> Report:
    """Examines the database and the broker, for a few seconds. Never raises: an unreachable server is a finding."""
    findings = await _guarded("database", _examine_database(installation))
    url = installation.broker_url
    if url is None:
        return Report(tuple(findings))
    match server_kind(url):
        case ServerKind.AMQP:
            from outbox.doctor.rabbitmq import examine_rabbitmq

            examination = examine_rabbitmq(
                url,
                installation.consumers,
                exchange_name=installation.exchange_name,
                management_url=installation.management_url,
                consumer_timeout=installation.consumer_timeout,
            )
        case ServerKind.KAFKA:
            examination = _examine_kafka(url, installation.consumers)
        case ServerKind.NATS:
            examination = _examine_nats(url, installation.consumers)
        case ServerKind.REDIS:
            examination = _examine_redis(url)
        case ServerKind.AWS:
            examination = _examine_aws(url, installation.consumers)
        case _ if url != installation.database_url:
            connect = connect_to(url, application_name=_NAME)
            examination = examine_queues(connect, TableName.parse(installation.table_name))
        case _:
            return Report(tuple(findings))
    findings += await _guarded("broker", examination)
    findings += await _guarded("topology", _examine_consumers(url, installation.consumers))
    return Report(tuple(findings))


async def _guarded(check: str, examination: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await examination
    except (DatabaseUnavailableError, BrokerUnavailableError) as failure:
        hint = "check that it runs, and that address and password are correct"
        if isinstance(failure.__cause__, asyncpg.TooManyConnectionsError):
            hint = "close connections that are not needed, or raise the limit of the server, the database or the role"
        return [error(check, f"cannot be reached: {failure}", hint)]
    except OutboxError as failure:
        return [error(check, str(failure))]


async def _examine_consumers(url: str, consumers: "Sequence[Consumer]") -> list[Finding]:
    return [error("topology", reason) for reason in unkept(url, consumers)]


async def _examine_kafka(url: str, consumers: "Sequence[Consumer]") -> list[Finding]:
    from outbox.transports.kafka import KafkaTransport
    from outbox.transports.kafka_source import topics_of

    transport = KafkaTransport(url)
    findings = []
    try:
        await transport.open()
        topic = transport.only_topic
        if topic is not None and not await transport.has_topic(topic):
            findings.append(
                error("topology", f"the topic {topic!r} is missing", "create it: messages are held until it exists")
            )
        elif topic is None:
            for consumer in consumers:
                topic = topics_of(consumer.binding_key, kafka_topic(url))
                # Several topics are a regular expression, which may match more of them tomorrow.
                if not topic.startswith("^") and not await transport.has_topic(topic):
                    summary = f"the topic {topic!r} of the queue {consumer.queue!r} is missing"
                    findings.append(warning("topology", summary, "create it: its worker waits for it"))
    finally:
        await transport.close()
    return findings or [well("broker", transport.destination)]


async def _examine_nats(url: str, consumers: "Sequence[Consumer]") -> list[Finding]:
    from outbox.transports.nats import NatsTransport
    from outbox.transports.nats_source import filter_subjects

    transport = NatsTransport(url)
    findings = []
    try:
        subject = transport.only_subject
        if not await transport.has_stream(subject or "outbox.probe") and subject is not None:
            summary = f"no stream stores the subject {subject!r}"
            findings.append(error("topology", summary, "create one: messages are held until it exists"))
        for consumer in consumers if subject is None else ():
            wanted = filter_subjects(consumer.binding_key, nats_subject(url))
            if not any([await transport.has_stream(each) for each in wanted]):
                summary = f"no stream stores the subject {wanted[-1]!r} of the queue {consumer.queue!r}"
                findings.append(warning("topology", summary, "create one: its worker does not start without it"))
    finally:
        await transport.close()
    return findings or [well("broker", transport.destination)]


async def _examine_redis(url: str) -> list[Finding]:
    from outbox.transports.redis import RedisTransport

    transport = RedisTransport(url)
    options = transport.options
    try:
        await transport.open()
        missing = await transport.missing_stream()
    finally:
        await transport.close()
    findings = [well("broker", transport.destination)]
    if missing is not None:
        hint = "start a worker whose queue reads it: messages are held until it exists"
        findings.append(error("topology", f"the stream {missing!r} is missing", hint))
    if options.maxlen is not None:
        hint = "write trim=true instead: workers then delete what all groups have read"
        findings.append(warning("broker", f"maxlen={options.maxlen} can delete messages that no worker has read", hint))
    if options.lossy:
        hint = "set appendonly yes and appendfsync always on the server, and leave out durability"
        findings.append(warning("broker", "durability=lossy: the server may lose messages that it has confirmed", hint))
    return findings


async def _examine_aws(url: str, consumers: "Sequence[Consumer]") -> list[Finding]:
    from outbox.transports.aws import AwsTransport
    from outbox.transports.aws.source import queue_name

    transport = AwsTransport(url)
    findings = [well("broker", transport.destination)]
    hint = "create it, or start a worker, which does: messages are held until it exists"
    try:
        await transport.open()
        if transport.options.service == "sns":
            subscribed = await transport.has_subscription()
            if not subscribed:
                topic, lack = transport.options.name, "is missing" if subscribed is None else "has no subscription"
                findings.append(error("topology", f"the topic {topic!r} {lack}", hint))
        elif (only := transport.only_queue) is not None and not await transport.has_queue(only):
            findings.append(error("topology", f"the queue {only!r} is missing", hint))
        for consumer in consumers:
            if unkept(url, [consumer]):
                continue  # `_examine_consumers` reports it
            try:
                name = queue_name(
                    transport.options, queue=consumer.queue, binding_key=consumer.binding_key, ordered=consumer.ordered
                )
            except TopologyError as failure:
                findings.append(error("topology", str(failure)))
            else:
                if name != transport.only_queue and not await transport.has_queue(name):
                    findings.append(warning("topology", f"the queue {name!r} is missing in SQS", "start its worker"))
    finally:
        await transport.close()
    return findings


async def _examine_database(installation: Installation) -> list[Finding]:
    from outbox.relay import BELL_CONNECTIONS, SPARE_CONNECTIONS
    from outbox.transports.postgres.broker import POOL_SIZE

    connect = connect_to(installation.database_url, application_name=_NAME)
    table = TableName.parse(installation.table_name)
    # The largest number of connections of one relay and one worker, as `MessageRelay` and `Worker` size their pools.
    in_transactions = sum(bool(consumer.plan.resources) for consumer in installation.consumers)
    needed = installation.lanes + SPARE_CONNECTIONS + BELL_CONNECTIONS + in_transactions * installation.prefetch_count
    needed += 2  # each of them reports over a connection of its own
    if server_kind(installation.broker_url or installation.database_url) is ServerKind.POSTGRES:
        needed += POOL_SIZE + BELL_CONNECTIONS  # of the worker, for its queues
    # Where a relay with these settings sends. None: unknown, because a PostgreSQL broker URL may or may not name the outbox's
    # own database.
    destination = None
    if installation.broker_url is None:
        destination = own_database(exchange_name=installation.exchange_name)
    elif server_kind(installation.broker_url) is not ServerKind.POSTGRES:
        destination = destination_of(installation.broker_url, exchange_name=installation.exchange_name)
    with unavailable_errors("examining the database"):
        async with connect() as connection:
            schema = await schema_of(connection, table)
            if schema is None:
                # `to_regclass` overlooks schemas of the search path that the role may not use.
                hint = "run `outbox migrate`, or if it exists grant this role usage on its schema"
                raise SchemaError(f"the table {table} does not exist in a schema that this role may use: {hint}")
            examination = Examination(connection, table, schema)
            findings: list[Finding] = []
            checks: list[Callable[[], Awaitable[list[Finding]]]] = [
                examination.server,
                lambda: examine_schema(connection, table, schema),
                lambda: examination.settings(transactions=bool(in_transactions)),
                examination.dead_rows,
                lambda: examination.rights(
                    worker=bool(installation.consumers),
                    handover=installation.broker_url in (None, installation.database_url),
                ),
                lambda: examination.connections(needed=needed),
                examination.leftovers,
                lambda: examination.relays(wanted=destination),
            ]
            if installation.audit:
                checks.append(lambda: examine_audit(connection, TableName(table.name, schema)))
            for check in checks:
                try:
                    findings += await check()
                except asyncpg.InsufficientPrivilegeError as refusal:
                    summary = f"a check was not possible: {refusal}"
                    findings.append(warning("rights", summary, "run the doctor as a role with this privilege"))
                except asyncpg.PostgresError as failure:
                    # Tables that are damaged or of another program. The connection is still there for the other checks.
                    findings.append(
                        error("checks", f"a check was not possible: {reason_of(failure)}", "fix the other findings first")
                    )
    listen = installation.listen_url
    listening = connect if listen is None else connect_to(listen, application_name=_NAME)
    return [*findings, await examine_listening(listening)]
