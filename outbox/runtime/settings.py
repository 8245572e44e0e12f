"""The settings table: each field of `Settings` is a variable `OUTBOX_<FIELD>`, with its type, default, unit and readers.

The service, the command options, docs/settings.md (`python -m scripts.settings`) and the check of the environment read this
table. To add a setting, add a field here and use it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic.fields import FieldInfo

from outbox.core import arguments
from outbox.core.arguments import LARGEST_BATCH_SIZE, LARGEST_NUMBER, MOST_LANES
from outbox.core.byte_limits import MAX_BATCH_BYTES, MAX_BODY_BYTES
from outbox.core.destinations import DEFAULT, validate_destination
from outbox.core.duration import as_delay, as_retention
from outbox.core.urls import postgres_url, server_kind
from outbox.engine.ordering import OrderingRules
from outbox.errors import DurationError
from outbox.large_bodies import LargeBodies
from outbox.masking import Masking
from outbox.masking.paths import check_paths

if TYPE_CHECKING:
    from outbox.encryption import Encryption

PREFIX = "OUTBOX_"


class Reader(StrEnum):
    """A process that reads settings: the service, or a command. `OPERATOR` is every command that shows or repairs messages."""

    SERVICE = "service"
    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTAIN = "maintain"
    MIGRATE = "migrate"
    DOCTOR = "doctor"
    OPERATOR = "operator commands"


class Runs(StrEnum):
    """A component that a process of the service can run."""

    API = "api"
    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTAIN = "maintain"


SERVICE, RELAY, WORKER, ARCHIVER = Reader.SERVICE, Reader.RELAY, Reader.WORKER, Reader.ARCHIVER
MAINTAIN, DOCTOR, OPERATOR = Reader.MAINTAIN, Reader.DOCTOR, Reader.OPERATOR
COMPONENTS = (RELAY, WORKER, ARCHIVER, MAINTAIN)
"""The long-running commands."""


def row(
    default: Any,
    help: str,  # noqa: A002 — the word of the table, and of click
    *,
    section: str,
    readers: tuple[Reader, ...] = (SERVICE,),
    unit: str = "",
    unset: str = "",
    secret: bool = False,
    **constraints: Any,
) -> Any:
    """Declares a row of the table as a field.

    Args:
        default: the default value; None if the variable may stay unset.
        help: one or two sentences, for docs/settings.md and `--help`.
        section: the heading under which docs/settings.md lists it.
        readers: the processes that read it.
        unit: what a number counts.
        unset: what applies instead of a default of None.
        secret: whether `OUTBOX_<FIELD>_FILE` may name a file that contains it.
        constraints: bounds, passed to `pydantic.Field`.
    """
    facts: Any = {"section": section, "readers": list(readers), "unit": unit, "unset": unset, "secret": secret}
    return Field(default=default, description=help, json_schema_extra=facts, **constraints)


_database = partial(row, section="Database", readers=tuple(Reader))
_broker = partial(row, section="Broker", readers=(SERVICE, *COMPONENTS, DOCTOR, OPERATOR))
_relay = partial(row, section="Relay", readers=(SERVICE, RELAY))
_worker = partial(row, section="Worker", readers=(SERVICE, WORKER))
_memory = partial(row, section="Memory", unit="bytes", ge=1, le=LARGEST_NUMBER)
_dead_letters = partial(row, section="Dead letters", readers=(SERVICE, ARCHIVER))
_reports = partial(row, section="Reports", readers=(SERVICE, RELAY, WORKER, ARCHIVER))
_health = partial(row, section="Health", readers=(SERVICE, DOCTOR, OPERATOR))
_maintenance = partial(row, section="Maintenance", readers=(SERVICE, MAINTAIN))
_process = partial(row, section="Process", readers=(SERVICE, *COMPONENTS))
_monitoring = partial(row, section="Addresses and metrics", readers=COMPONENTS)
_http = partial(row, section="Addresses and metrics")
_admin = partial(row, section="Admin")
_alerts = partial(row, section="Alerts")
_client = partial(row, section="Client", readers=(OPERATOR,))


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _seconds(value: object) -> object:
    """Seconds as a number, or a duration such as `1m30s`."""
    if not isinstance(value, str):
        return value
    try:
        return timedelta(seconds=float(value))
    except (ValueError, OverflowError):
        return as_delay(value)


def _retention(value: object) -> object:
    """Days (`30d`), hours (`12h`), or a value of `_seconds`."""
    try:
        return as_retention(value) if isinstance(value, str) else value
    except DurationError as error:
        try:
            return _seconds(value)
        except DurationError:
            raise error from None


def _retention_or_never(value: object) -> object:
    return "NEVER" if isinstance(value, str) and value.upper() == "NEVER" else _retention(value)


def _ordering_policy(value: str) -> str:
    OrderingRules.of(value)
    return value


def _paths(value: tuple[str, ...]) -> tuple[str, ...]:
    check_paths(value)
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Seconds = Annotated[timedelta, BeforeValidator(_seconds)]
Delay = Annotated[Seconds, AfterValidator(as_delay)]
# The checks are those of the constructors, here because these would name their arguments instead of the variable.
PositiveSeconds = Annotated[Seconds, AfterValidator(partial(arguments.seconds, "the time"))]
Interval = Annotated[Seconds, AfterValidator(partial(arguments.interval, "the time"))]
Retention = Annotated[timedelta, BeforeValidator(_retention), AfterValidator(partial(arguments.retention, "the time"))]
RetentionOrNever = Annotated[
    Annotated[timedelta, AfterValidator(partial(arguments.retention, "the time"))] | Literal["NEVER"],
    BeforeValidator(_retention_or_never),
]


class Settings(BaseModel):
    """The table. `--help` lists options in this order."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    database_url: SecretStr | None = _database(
        None,
        "The PostgreSQL database, as `postgresql://user:password@host:5432/database`.",
        unset="the service starts an embedded server, for development; commands refuse to start",
        secret=True,
    )
    table_name: str = _database("outbox_table", "The outbox table, as `table` or `schema.table`.")
    database_pool_size: int = _database(
        10,
        "Maximum number of database connections that the routes of one process use at the same time.",
        readers=(SERVICE,),
        unit="connections",
        ge=1,
        le=500,
    )
    databases_file: Path | None = _database(
        None,
        "A file with several databases, which one process serves: a line `name=postgresql://…` for each, instead of "
        "`OUTBOX_DATABASE_URL`.",
        readers=COMPONENTS,
        unset="the process serves one database",
    )
    databases_refresh: Interval = _database(
        timedelta(seconds=30), "Interval at which that file is read again.", readers=COMPONENTS
    )
    databases_longest_pause: Interval = _database(
        timedelta(seconds=30),
        "Maximum pause before one of several databases is served again after a failure. The pause doubles from 1 s.",
        readers=COMPONENTS,
    )
    data_dir: Path | None = _database(
        None, "The data folder of the embedded server.", readers=(SERVICE,), unset="`.data/postgres`"
    )
    migrate: bool = _database(
        False,
        "Create or upgrade the tables when the service starts. "
        "An embedded server's tables, and those of `python -m app`, are always created and upgraded.",
        readers=(SERVICE,),
    )

    broker_url: SecretStr | None = _broker(
        None,
        "Where events are sent: `amqp://user:password@host:5672/vhost` for RabbitMQ, `kafka://user:password@host:9092` for "
        "Kafka, `nats://user:password@host:4222` for NATS, `redis://user:password@host:6379/0` for Redis, `sqs://region` or "
        "`sns://region/topic` for AWS, or a `postgresql://` URL.",
        unset="the database delivers events, without a broker",
        secret=True,
    )
    exchange_name: str = _broker("outbox", "The exchange to which events are published.", min_length=1, max_length=200)
    management_url: SecretStr | None = _broker(
        None,
        "RabbitMQ's HTTP API, as `http://user:password@host:15672`: the source of queue depths, policies and bindings, "
        "which AMQP does not report.",
        readers=(SERVICE, DOCTOR, OPERATOR),
        unset="queue depths, policies and bindings are not shown",
        secret=True,
    )

    listen_url: SecretStr | None = _database(
        None,
        "A direct address of the same database for LISTEN. Required if `OUTBOX_DATABASE_URL` connects through a pooler "
        "that does not forward notifications.",
        readers=(SERVICE, RELAY, DOCTOR),
        unset="`OUTBOX_DATABASE_URL`",
        secret=True,
    )

    destination: Annotated[str, AfterValidator(validate_destination)] = _relay(
        DEFAULT,
        "The destination that the relay serves, if messages go to several brokers: `default` is the outbox table itself.",
    )
    batch_size: int | None = _relay(
        None,
        "Messages that a relay claims in one batch.",
        unit="messages",
        unset="50, up to 500 during a backlog",
        ge=1,
        le=LARGEST_BATCH_SIZE,
    )
    lanes: int = _relay(
        2,
        "Batches that a relay has in flight at the same time.",
        readers=(SERVICE, RELAY, DOCTOR),
        unit="batches",
        ge=1,
        le=MOST_LANES,
    )
    publish_timeout: Annotated[Seconds, AfterValidator(partial(arguments.send_timeout, "the time"))] = _relay(
        timedelta(seconds=10), "Maximum wait for the broker's confirms of one batch."
    )
    max_attempts: int = _relay(
        20,
        "Maximum attempts to send a message that the broker refuses. After the last attempt the message is parked.",
        unit="attempts",
        ge=1,
        le=LARGEST_NUMBER,
    )
    on_unroutable: Literal["hold", "drop"] = _relay(
        "hold", "What to do with an event for which no queue is bound: `hold` it until one is bound, or `drop` it."
    )
    ordering_policy: Annotated[str, AfterValidator(_ordering_policy)] = _relay(
        "block",
        "What to do with the later messages of an ordering key while an earlier one cannot be sent: let them wait (`block`), "
        "park them too (`park`), or send them (`skip`). By key prefix: `skip,orders:=block`.",
    )
    clean_up_after: Annotated[
        timedelta | Literal["IMMEDIATELY", "NEVER"],
        BeforeValidator(lambda value: word if (word := str(value).upper()) in ("IMMEDIATELY", "NEVER") else _seconds(value)),
        AfterValidator(lambda value: arguments.seconds("the time", value) if isinstance(value, timedelta) and value else value),
        AfterValidator(lambda value: value or "IMMEDIATELY"),
    ] = _relay("IMMEDIATELY", "When sent messages are deleted: `IMMEDIATELY`, `NEVER`, or after a time.")
    expiration: PositiveSeconds | None = _relay(
        None, "Expiration of messages that are published without one.", unset="messages do not expire"
    )
    notification_timeout: Interval = _relay(timedelta(seconds=60), "Maximum sleep of an idle relay that uses LISTEN.")
    poll_interval: Interval = _relay(timedelta(seconds=1), "Sleep of an idle relay if LISTEN is not available.")

    consumers: str | None = _worker(
        None,
        "The consumers that the worker runs: `package.module:name` of a consumer or of a list of consumers.",
        readers=(SERVICE, WORKER, DOCTOR),
        unset="the example's consumers if the example runs; otherwise the service runs no worker",
        pattern=r"^[\w.]+(:[\w.]+)?$",
    )
    prefetch_count: int = _worker(
        10,
        "Maximum number of messages that each consumer has in flight.",
        readers=(SERVICE, WORKER, DOCTOR),
        unit="messages",
        ge=1,
        le=65_535,
    )
    retry_delays: Annotated[
        tuple[Delay, ...],
        BeforeValidator(lambda value: () if value == "none" else _split(value)),
    ] = _worker(
        tuple(timedelta(seconds=seconds) for seconds in (1, 10, 60, 300)),
        "Delay before each retry of a failed handler; `none` disables retries.",
    )

    propagation: Literal["auto", "child", "link"] = _worker(
        "auto",
        "How a handler's span relates to its publisher's trace: `child`, `link`, or `auto`, which links messages that were "
        "delayed, retried, requeued or handled in a batch.",
    )

    archive_queues: Names = _dead_letters(
        (), "Queues whose dead letters are archived, in addition to the queues that workers report."
    )
    archive_discover_every: Interval = _dead_letters(
        timedelta(seconds=10), "Interval at which the archiver looks for new queues."
    )

    max_batch_bytes: int = _memory(
        MAX_BATCH_BYTES,
        "Maximum total size of the messages that a lane of the relay, a consumer on PostgreSQL, or the archiver has in "
        "memory at the same time. A single message may be larger.",
        readers=(SERVICE, RELAY, WORKER, ARCHIVER),
    )
    max_body_bytes: int = _memory(
        MAX_BODY_BYTES,
        "Maximum size of a message that relay and worker fetch from the database. The relay parks larger messages; "
        "on PostgreSQL the worker dead-letters them.",
        readers=(SERVICE, RELAY, WORKER),
    )

    mask_keys: Names = _dead_letters(
        (),
        "Additional keys whose values are hidden wherever messages are shown or searched.",
        readers=(SERVICE, WORKER, ARCHIVER, OPERATOR),
    )
    mask_paths: Annotated[Names, AfterValidator(_paths)] = _dead_letters(
        (),
        "JSON paths in message bodies whose values are hidden in the same way: `$.customer.email,$.items[*].name`.",
        readers=(SERVICE, WORKER, ARCHIVER, OPERATOR),
    )

    encryption_keys: SecretStr | None = _dead_letters(
        None,
        "Keys of encrypted bodies, as `2026-11=BASE64,2026-05=BASE64`, 32 bytes each. The first encrypts new messages.",
        unset="nothing is encrypted or decrypted",
        readers=(SERVICE, WORKER, OPERATOR),
        secret=True,
    )
    large_bodies_url: str | None = _dead_letters(
        None,
        "Store of large bodies, as `file:///folder` or `s3://bucket/prefix`. Maintenance deletes what nothing refers to.",
        unset="all bodies are in their messages",
        readers=(SERVICE, WORKER, MAINTAIN, OPERATOR),
    )

    name: str | None = _reports(
        None,
        "Name of this process's components in the admin, the CLI and the dashboard.",
        unset="`host:pid`",
        min_length=1,
        max_length=250,
    )
    reporting: bool = _reports(True, "Write heartbeats and statistics to the database, and apply pauses.")
    history: bool = _reports(True, "Record what happens to each message in `outbox_history`.", readers=(SERVICE, RELAY, WORKER))
    index_keys: Annotated[Names, AfterValidator(_paths)] = _reports(
        (),
        "JSON paths in message bodies, such as `$.order_id`, whose values the history stores. You can find messages by them.",
        readers=(SERVICE, RELAY, WORKER),
    )
    heartbeat_interval: Interval = _reports(timedelta(seconds=5), "Interval between heartbeats.")

    health_late_after: PositiveSeconds = _health(
        timedelta(seconds=60), "Age at which a message that waits for a relay or a worker raises a warning."
    )
    health_overdue_after: PositiveSeconds = _health(
        timedelta(minutes=5), "Age at which a waiting, held or stalled message raises an error."
    )
    health_queue_depth: int = _health(
        10_000, "Queue depth above which a warning is raised.", unit="messages", ge=1, le=LARGEST_NUMBER
    )
    health_lost_for: PositiveSeconds = _health(
        timedelta(minutes=15), "How long a lost component that was not replaced is reported."
    )
    health_dead_letter_window: PositiveSeconds = _health(
        timedelta(hours=1), "How long an open dead letter counts as an error. After that it counts as a warning."
    )

    inbox_retention: Retention = _maintenance(
        timedelta(days=30),
        "The deduplication window: how long an inbox remembers a handled message.",
        readers=(SERVICE, MAINTAIN, OPERATOR),
    )
    history_retention: Retention = _maintenance(timedelta(days=14), "How long the history of messages is kept.")
    dead_letter_retention: RetentionOrNever = _maintenance(
        timedelta(days=90),
        "How long requeued and discarded dead letters are kept; `NEVER` keeps them forever. Open ones are always kept.",
    )
    audit_retention: RetentionOrNever = _maintenance(
        timedelta(days=365), "How long the admin's audit log and alerts are kept; `NEVER` keeps them forever."
    )

    run: Annotated[frozenset[Runs], BeforeValidator(_split)] = _process(
        frozenset(Runs), "The components that this process of the service runs.", readers=(SERVICE,)
    )
    grace_period: Annotated[Seconds, AfterValidator(arguments.grace_period)] = _process(
        timedelta(seconds=30), "Maximum time for running handlers to finish when the process stops."
    )
    service_version: str | None = _process(
        None,
        "The release of your service, such as a tag or a commit, shown with components, failures and dead letters.",
        unset="components show the version of Outbox",
        min_length=1,
        max_length=100,
    )
    tracing: bool = _process(
        True,
        "Make OpenTelemetry spans if the process has configured a tracer provider, as `opentelemetry-instrument` does.",
        readers=(SERVICE, RELAY, WORKER),
    )
    otel_metrics: bool = _process(
        False,
        "Also report the metrics to OpenTelemetry, if the process has configured a meter provider.",
        readers=(SERVICE, RELAY, WORKER, ARCHIVER),
    )
    metrics: bool = _http(True, "Collect metrics and serve them under `/metrics`.", readers=(SERVICE, *COMPONENTS))
    monitoring_host: str = _monitoring("127.0.0.1", "The address on which a command serves health and metrics.")
    monitoring_port: int | None = _monitoring(
        None,
        "The port on which a command serves health and metrics; 0 serves neither.",
        unset="9101 for the relay, 9102 for the worker, 9103 for the archiver, 9104 for maintenance, or a free port",
        ge=0,
        le=65_535,
    )
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
    ] = _process("INFO", "Minimum level of log records.")
    log_format: Literal["text", "json"] = _process(
        "text", "The format of the log: `text`, or `json` with one object per line and ids in separate fields."
    )

    http_host: str = _http("127.0.0.1", "The address on which `python -m app` listens.")
    http_port: int | None = _http(
        None, "The port on which `python -m app` listens.", unset="8000, or the next free port", ge=1, le=65_535
    )
    docs: bool = _http(True, "Serve the API's documentation under `/docs`, without a login.")
    metrics_token: SecretStr | None = _http(
        None, "The bearer token that `/metrics` of the service requires.", unset="`/metrics` is open", secret=True
    )

    admin_tokens: Names = _admin(
        (),
        "Tokens for the admin: entries `name:role:hash` or `name:role:hash:last-day`, as `outbox token` prints them. With "
        "`OUTBOX_ADMIN_DATABASES`, `eu/name:role:hash` is for the outbox `eu` only.",
        unset="no access, except in development",
        secret=True,
    )
    admin_databases: SecretStr | None = _admin(
        None,
        "Databases of other installations that the admin of this service serves too, each below `/outbox/NAME`: entries "
        "`name=postgresql://…`, separated by spaces, line breaks or commas. `name=postgresql://…|amqp://…|http://…` adds an "
        "installation's broker and RabbitMQ's HTTP API.",
        unset="the admin serves the outbox of this service only, below `/outbox`",
        secret=True,
    )
    admin_outbox_name: str = _admin("main", "The name of this service's own outbox next to those of `OUTBOX_ADMIN_DATABASES`.")
    oidc_issuer: str | None = _admin(
        None, "The OpenID Connect provider for login, as `https://login.example`.", unset="login with tokens only"
    )
    oidc_client_id: str | None = _admin(
        None, "The client id of the admin at the provider.", unset="required with `OUTBOX_OIDC_ISSUER`"
    )
    oidc_client_secret: SecretStr | None = _admin(
        None, "The client secret of the admin at the provider.", unset="a public client, with PKCE only", secret=True
    )
    oidc_roles: Names = _admin(
        (),
        "Maps values of the claim to roles: entries `value=role`, as `sre=admin,support=operator,*=viewer`; `*` matches every "
        "account. Required with `OUTBOX_OIDC_ISSUER`.",
    )
    oidc_roles_claim: str = _admin("groups", "The claim that is mapped to roles, a string or a list.")
    oidc_name_claim: str = _admin("email", "The claim that names users in the audit log.")
    oidc_scopes: str = _admin("openid email profile", "The scopes to request from the provider.")
    oidc_redirect_url: str | None = _admin(
        None,
        "The redirect URL for the provider: `https://host/outbox/session/oidc/callback`.",
        unset="derived from the address of the browser's request",
    )
    environment: str | None = _admin(
        None,
        "The name of the installation on every page of the dashboard, optionally with a colour: `production:red`, "
        "`staging:amber`. Colours are `red`, `amber`, `green`, `blue` and `grey`.",
        unset="no name",
    )
    log_url: str | None = _admin(
        None,
        "Link template to your logs of a message or an attempt, as `https://logs.example/?q={message_id}`. Placeholders are "
        "`{message_id}`, `{root_id}`, `{queue}`, `{routing_key}` and `{trace_id}`.",
        unset="no links",
    )
    trace_url: str | None = _admin(
        None,
        "Link template to the trace of a message or an attempt, as `https://traces.example/trace/{trace_id}`.",
        unset="no links",
    )
    admin_read_only: bool = _admin(False, "Reject all changes through the admin, for every role.")
    admin_session_lifetime: Annotated[
        timedelta, BeforeValidator(_retention), AfterValidator(partial(arguments.seconds, "the time"))
    ] = _admin(timedelta(hours=12), "How long a browser session of the admin is valid.")
    admin_body_limit: int = _admin(
        4_194_304, "Maximum size of a request body that the admin reads.", unit="bytes", ge=1_024, le=1_073_741_824
    )
    admin_streams: int = _admin(
        50, "Maximum number of clients of the admin's event stream per process.", unit="clients", ge=1, le=100_000
    )
    admin_streams_per_principal: int = _admin(
        10, "Maximum number of open event streams per principal.", unit="streams", ge=1, le=100_000
    )
    admin_reads_per_principal: int = _admin(
        4,
        "Maximum number of concurrent read requests to the admin per principal. Further requests wait.",
        unit="requests",
        ge=1,
        le=1_000,
    )
    admin_error_text: Literal["viewer", "operator"] = _admin(
        "viewer", "The lowest role to which the admin shows error messages and stack traces, masked."
    )
    alert_webhooks: Names = _alerts(
        (),
        "Webhooks for alerts: `https://host/path`, or `slack+https://host/path` for Slack and compatible services.",
        unset="no alerts",
        secret=True,
    )
    alert_secret: SecretStr | None = _alerts(
        None,
        "The key that signs alerts to webhooks other than Slack: `whsec_` and at least 16 bytes in base64.",
        unset="only `slack+https://` webhooks can be used",
        secret=True,
    )
    alert_on: Names | None = _alerts(
        None,
        "Which alerts are sent: codes of findings, `group_new`, `group_reopened` and `operation_ended`.",
        unset="those listed in docs/alerts.md",
    )
    alert_after: PositiveSeconds = _alerts(
        timedelta(minutes=1),
        "How long a condition must hold before an alert is sent, and how long it must be over before the alert is resolved.",
    )
    alert_dead_letters_above: int = _alerts(
        0, "Number of open dead letters above which an alert is sent.", unit="dead letters", ge=0, le=9_999
    )
    alert_quiet: str | None = _alerts(
        None, "Hours in which only errors are sent, as `22:00-07:00 Europe/Berlin`.", unset="none"
    )
    alert_every: PositiveSeconds = _alerts(
        timedelta(seconds=15), "Interval at which conditions are checked and alerts are sent."
    )
    alert_timeout: PositiveSeconds = _alerts(timedelta(seconds=10), "Maximum wait for the response of a webhook.")
    dashboard_url: str | None = _alerts(
        None, "The dashboard's address, such as `https://host/outbox/ui`, for links in alerts.", unset="no links"
    )
    example: bool | None = _admin(
        None,
        "Run the example: its public route `/orders`, its tables and its consumers.",
        unset="only if `OUTBOX_DATABASE_URL` is unset too",
    )
    development: bool | None = _admin(
        None,
        "Create an admin token at startup and print it to the terminal.",
        unset="only with `python -m app` and without `OUTBOX_ADMIN_TOKENS`",
    )

    @field_validator("run")
    @classmethod
    def _runs_something(cls, value: frozenset[Runs]) -> frozenset[Runs]:
        if not value:
            raise ValueError(f"name at least one of {', '.join(Runs)}")
        return value

    @field_validator("database_url", "listen_url")
    @classmethod
    def _names_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            postgres_url(value.get_secret_value(), argument="the address")
        return value

    @field_validator("broker_url")
    @classmethod
    def _names_a_broker(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            server_kind(value.get_secret_value(), argument="the address")
        return value


class ClientSettings(BaseModel):
    """Settings of commands that call a running service."""

    model_config = ConfigDict(defer_build=True)

    url: str | None = _client(
        None,
        "The service that commands call, as `https://host/outbox`, instead of the database.",
        unset="commands use the database",
    )
    token: SecretStr | None = _client(
        None, "The token for that service, created by `outbox token`.", unset="requests are sent without a token", secret=True
    )


class Kind(StrEnum):
    """The kind of a setting's value."""

    SWITCH = "switch"
    NUMBER = "number"
    DURATION = "duration"
    RETENTION = "retention"
    LIST = "list"
    CHOICE = "choice"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table, read from its field."""

    name: str
    field: FieldInfo
    section: str
    readers: frozenset[Reader]
    unit: str
    unset: str
    secret: bool

    @classmethod
    def of(cls, name: str, field: FieldInfo) -> "Setting":
        """Reads the row from a field that `row` declared."""
        facts: Any = field.json_schema_extra
        return cls(name=name, field=field, **{**facts, "readers": frozenset(map(Reader, facts["readers"]))})

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def help(self) -> str:
        """The description, in Markdown."""
        return self.field.description or ""

    @property
    def kind(self) -> Kind:
        """The kind of the value."""
        parts = [*_parts(self.field.annotation), *self.field.metadata]
        if BeforeValidator(_retention) in parts or BeforeValidator(_retention_or_never) in parts:
            return Kind.RETENTION
        kinds = {tuple: Kind.LIST, frozenset: Kind.LIST, timedelta: Kind.DURATION, bool: Kind.SWITCH, int: Kind.NUMBER}
        return next((kind for each, kind in kinds.items() if each in parts), Kind.CHOICE if self.choices else Kind.TEXT)

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed words of a choice."""
        return tuple(part for part in _parts(self.field.annotation) if isinstance(part, str))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """The minimum and the maximum of a number."""
        facts = self.field.metadata
        least, most = ([getattr(each, bound) for each in facts if hasattr(each, bound)] for bound in ("ge", "le"))
        return (*least, None)[0], (*most, None)[0]

    @property
    def default(self) -> str | None:
        """The default as text of the variable; None without a default."""
        match self.field.default:
            case None | ():
                return None
            case bool() as switch:
                return str(switch).lower()
            case timedelta() as time:
                return _time_as_text(time, self.kind)
            case tuple() as times:
                return ",".join(_time_as_text(time, self.kind) for time in times)
            case frozenset() as names:
                return ",".join(sorted(names))
            case value:
                return str(value)

    def parse(self, text: str) -> Any:
        """Parses the text of a variable. Raises `ValueError` with the reason."""
        try:
            return TypeAdapter(self.field.rebuild_annotation()).validate_python(text)
        except ValidationError as error:
            # Without the cause: pydantic's own text quotes the value, which may be a secret.
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _parts(annotation: Any) -> Iterator[Any]:
    """Yields the types, validators and literals of an annotation, recursively."""
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _time_as_text(time: timedelta, kind: Kind) -> str:
    """Formats a duration as a variable has it: `30d` and `12h` for retentions, `1m30s` below an hour, otherwise seconds."""
    seconds = round(time.total_seconds())
    if kind is Kind.RETENTION and seconds % 3_600 == 0:
        return f"{seconds // 3_600}h" if seconds % 86_400 else f"{seconds // 86_400}d"
    if seconds >= 3_600:
        return str(seconds)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}m" * (minutes > 0) + f"{seconds}s" * (seconds > 0)


OF_SERVICE = {name: Setting.of(name, field) for name, field in Settings.model_fields.items()}
"""Settings of all processes, by name. Processes may share an environment, so each accepts the variables of the others."""
OF_CLIENT = {name: Setting.of(name, field) for name, field in ClientSettings.model_fields.items()}
SETTINGS: Mapping[str, Setting] = OF_SERVICE | OF_CLIENT
"""The whole table, by name."""
VARIABLES = frozenset(each.variable for each in SETTINGS.values())


def arguments_of(component: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Maps settings to the parameters of a relay, a worker, or another class, and returns the arguments that are set.

    A parameter has the name of its setting without the prefix `admin_` or `archive_`; `metrics` is `enable_metrics`, and so are
    `tracing` and `otel_metrics`. Durations are in seconds, and NEVER becomes None.
    """
    parameters, found = signature(component).parameters, dict[str, Any]()
    for name, setting in OF_SERVICE.items():
        is_switched = name in ("metrics", "tracing", "otel_metrics")
        argument = f"enable_{name}" if is_switched else name.removeprefix("admin_").removeprefix("archive_")
        value = values.get(name)
        if argument not in parameters or value is None:
            continue
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        elif setting.kind is Kind.RETENTION:
            value = None if value == "NEVER" else value
        elif isinstance(value, timedelta) and not setting.choices:
            value = value.total_seconds()
        found[argument] = value
    if "masking" in parameters:
        found["masking"] = Masking().also(*values.get("mask_keys") or (), paths=values.get("mask_paths") or ())
    if "encryption" in parameters and (encryption := encryption_of(values)) is not None:
        found["encryption"] = encryption
    if "large_bodies" in parameters and (large_bodies := large_bodies_of(values)) is not None:
        found["large_bodies"] = large_bodies
    return found


def large_bodies_of(values: Mapping[str, Any]) -> LargeBodies | None:
    """Returns the large bodies of `OUTBOX_LARGE_BODIES_URL`; None if it is not set.

    Raises `ConfigurationError` for another URL, and `MissingExtraError`.
    """
    url = values.get("large_bodies_url")
    return LargeBodies.parse(url) if url else None


def encryption_of(values: Mapping[str, Any]) -> "Encryption | None":
    """Returns the encryption with the keys of `OUTBOX_ENCRYPTION_KEYS`; None if it is not set.

    Raises `ConfigurationError` for keys that cannot be read, without quoting them, and `MissingExtraError`.
    """
    keys = values.get("encryption_keys")
    if not keys:
        return None
    from outbox.encryption import Encryption, StaticKeys

    return Encryption(StaticKeys.parse(keys.get_secret_value() if isinstance(keys, SecretStr) else keys))
