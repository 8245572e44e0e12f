"""The service's settings, read from `OUTBOX_…` environment variables when it starts. docs/settings.md explains them."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from outbox.admin.security.tokens import Tokens
from outbox.core.arguments import LARGEST_NUMBER
from outbox.core.byte_limits import MAX_BATCH_BYTES, MAX_BODY_BYTES
from outbox.core.duration import as_delay, as_retention
from outbox.core.urls import postgres_url, redacted, server_kind
from outbox.engine.ordering import OrderingRules
from outbox.errors import ConfigurationError, DurationError
from outbox.masking.paths import check_paths
from outbox.runtime.environment import OF_COMMANDS, PREFIX, SECRETS, check_environment, secret

EXAMPLE_CONSUMERS = "app.orders.consumers:consumers"


class Runs(StrEnum):
    """What one process of the service can run."""

    API = "api"
    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTAIN = "maintain"


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _split_delays(value: object) -> object:
    return () if value == "none" else _split(value)


def _seconds(value: object) -> object:
    """Seconds as a number, or a duration such as `1m30s`."""
    if not isinstance(value, str):
        return value
    try:
        return timedelta(seconds=float(value))
    except (ValueError, OverflowError):
        return as_delay(value)


def _retention(value: object) -> object:
    """Days (`30d`), hours (`12h`), or what seconds can be."""
    try:
        return as_retention(value) if isinstance(value, str) else value
    except DurationError:
        return _seconds(value)


def _retention_or_never(value: object) -> object:
    return "NEVER" if isinstance(value, str) and value.upper() == "NEVER" else _retention(value)


def _ordering_policy(value: str) -> str:
    OrderingRules.of(value)
    return value


def _entries(value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(entry) for entry in Tokens.parse(value).entries)


def _paths(value: tuple[str, ...]) -> tuple[str, ...]:
    check_paths(value)
    return value


def _clean_up(value: object) -> object:
    upper = value.upper() if isinstance(value, str) else ""
    return upper if upper in ("IMMEDIATELY", "NEVER") else _seconds(value)


Seconds = Annotated[timedelta, BeforeValidator(_seconds)]
Delay = Annotated[Seconds, Field(ge=timedelta(0))]
Retention = Annotated[timedelta, BeforeValidator(_retention), Field(gt=timedelta(0))]
PositiveSeconds = Annotated[Seconds, Field(gt=timedelta(0))]


class Settings(BaseSettings):
    """Every field is the environment variable `OUTBOX_<FIELD>`; times are in seconds, or durations such as `1m30s`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True, hide_input_in_errors=True
    )

    run: Annotated[frozenset[Runs], NoDecode, BeforeValidator(_split)] = Field(
        default=frozenset(Runs), description="What this process runs, separated by commas."
    )

    database_url: SecretStr | None = Field(
        default=None,
        description="The PostgreSQL database, as `postgresql://user:password@host:5432/database`. "
        "Unset: an embedded server is started, for development.",
    )
    database_pool_size: int = Field(
        default=10, ge=1, le=500, description="Most database connections that the routes of one process use at once."
    )
    data_dir: Path | None = Field(
        default=None, description="Where the embedded server keeps its data. Unset: `.data/postgres`."
    )
    migrate: bool = Field(
        default=False,
        description="Whether the tables are created or upgraded when the service starts. "
        "On an embedded server, and with `python -m app`, they always are.",
    )
    table_name: str = Field(default="outbox_table", description="The outbox table, as `table` or `schema.table`.")
    listen_url: SecretStr | None = Field(
        default=None,
        description="A direct address of the same database for LISTEN, where `OUTBOX_DATABASE_URL` "
        "goes through a pooler that does not deliver notifications.",
    )

    broker_url: SecretStr | None = Field(
        default=None,
        description="Where events go: `amqp://user:password@host:5672/vhost` for RabbitMQ, or a `postgresql://` URL. "
        "Unset: they are handed over inside the database, without a broker.",
    )
    management_url: SecretStr | None = Field(
        default=None,
        description="RabbitMQ's HTTP API, as `http://user:password@host:15672`. `outbox doctor` asks it for policies and "
        "bindings, which AMQP does not tell.",
    )
    exchange_name: str = Field(default="outbox", min_length=1, max_length=200, description="The exchange of the events.")

    batch_size: int | None = Field(
        default=None, ge=1, le=10_000, description="Messages that the relay takes at once. Unset: 50, up to 500 under backlog."
    )
    lanes: int = Field(default=2, ge=1, le=64, description="Batches that the relay has in flight at once.")
    publish_timeout: PositiveSeconds = Field(
        default=timedelta(seconds=10), description="Longest wait for the broker's confirms of one batch."
    )
    max_attempts: int = Field(
        default=20, ge=1, description="Times that the relay sends a message that the broker refuses, before it is parked."
    )
    on_unroutable: Literal["hold", "drop"] = Field(
        default="hold", description="What becomes of an event that no queue is bound for: it waits, or it is dropped."
    )
    ordering_policy: Annotated[str, AfterValidator(_ordering_policy)] = Field(
        default="block",
        description="What becomes of the later messages of an ordering key while an earlier one cannot be sent: they wait "
        "(`block`), are parked with it (`park`), or go ahead (`skip`). By prefix of the key as in `skip,orders:=block`.",
    )
    clean_up_after: Annotated[timedelta | Literal["IMMEDIATELY", "NEVER"], BeforeValidator(_clean_up)] = Field(
        default="IMMEDIATELY", description="When sent messages are deleted: `IMMEDIATELY`, `NEVER`, or after a time."
    )
    expiration: PositiveSeconds | None = Field(
        default=None, description="How long a message lives that was published without an expiration. Unset: forever."
    )
    notification_timeout: PositiveSeconds = Field(
        default=timedelta(seconds=60), description="Longest sleep of an idle relay that LISTENs."
    )
    poll_interval: PositiveSeconds = Field(
        default=timedelta(seconds=1), description="Sleep of an idle relay where LISTEN does not deliver."
    )

    prefetch_count: int = Field(
        default=10, ge=1, le=10_000, description="Messages that each consumer of the worker has in hand at once."
    )
    retry_delays: Annotated[tuple[Delay, ...], NoDecode, BeforeValidator(_split_delays)] = Field(
        default=tuple(timedelta(seconds=seconds) for seconds in (1, 10, 60, 300)),
        description="Pauses before each further attempt of a handler that failed, separated by commas; `none` for no retries.",
    )
    consumers: str | None = Field(
        default=None,
        pattern=r"^[\w.]+(:[\w.]+)?$",
        description="What the worker runs: `package.module:name` of a list of consumers. "
        "Unset: the example's, where that runs; otherwise the service runs no worker.",
    )

    archive_queues: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Queues whose dead letters are archived, separated by commas, beside those that workers report.",
    )
    archive_discover_every: PositiveSeconds = Field(
        default=timedelta(seconds=10), description="How often the archiver looks for queues that are new."
    )
    mask_keys: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Further keys whose values are hidden wherever messages are shown or searched, separated by commas.",
    )
    mask_paths: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_paths)] = Field(
        default=(),
        description="Places in bodies that are hidden likewise, as in `$.customer.email,$.items[*].name`, separated by commas.",
    )

    max_batch_bytes: int = Field(
        default=MAX_BATCH_BYTES,
        ge=1,
        le=LARGEST_NUMBER,
        description="Bytes of messages that a lane of the relay, a consumer on PostgreSQL, or the archiver has in memory at "
        "once; a single one may be larger.",
    )
    max_body_bytes: int = Field(
        default=MAX_BODY_BYTES,
        ge=1,
        le=LARGEST_NUMBER,
        description="Bytes of the largest message that relay and worker fetch from the database. The relay parks a larger one; "
        "on PostgreSQL the worker makes it a dead letter.",
    )

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=250,
        description="How operators know the relay and the worker of this process. Unset: by `host:pid`.",
    )
    reporting: bool = Field(
        default=True,
        description="Whether relay and worker tell the database what they do, and heed pauses that are asked for there.",
    )
    inbox_retention: Retention = Field(
        default=timedelta(days=30), description="How long inboxes remember the messages that were handled."
    )
    history_retention: Retention = Field(default=timedelta(days=14), description="How long facts about messages are kept.")
    dead_letter_retention: Annotated[timedelta | Literal["NEVER"], BeforeValidator(_retention_or_never)] = Field(
        default=timedelta(days=90),
        description="How long dead letters stay that were requeued or discarded; `NEVER` deletes none. Open ones stay.",
    )
    history: bool = Field(default=True, description="Whether what becomes of each message is written down in `outbox_history`.")
    heartbeat_interval: PositiveSeconds = Field(
        default=timedelta(seconds=5), description="How often relay and worker give a sign of life."
    )

    health_late_after: PositiveSeconds = Field(
        default=timedelta(seconds=60),
        description="Age of a message that waits for a relay or a worker from which on the health verdict is a warning.",
    )
    health_overdue_after: PositiveSeconds = Field(
        default=timedelta(minutes=5), description="The same, from which on it is an error; also of held and stalled messages."
    )
    health_queue_depth: int = Field(
        default=10_000, ge=1, le=LARGEST_NUMBER, description="Messages in one queue beyond which the verdict is a warning."
    )
    health_lost_for: PositiveSeconds = Field(
        default=timedelta(minutes=15), description="How long a lost component is in the verdict that no other has replaced."
    )
    health_dead_letter_window: PositiveSeconds = Field(
        default=timedelta(hours=1),
        description="How long an open dead letter is an error in the verdict; then it is a warning.",
    )

    grace_period: PositiveSeconds = Field(
        default=timedelta(seconds=30), description="How long running handlers may take to finish when the process is to end."
    )
    admin_tokens: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_entries)] = Field(
        default=(),
        description="Who may use the admin: `name:role:hash`, as `outbox token` prints it, separated by commas. "
        "Unset: nobody, but in development.",
    )
    admin_read_only: bool = Field(default=False, description="Whether the admin only shows and changes nothing, for any role.")
    admin_session_lifetime: Retention = Field(
        default=timedelta(hours=12), description="How long a browser that has logged in to the admin stays logged in."
    )
    admin_body_limit: int = Field(
        default=4_194_304,
        ge=1_024,
        le=1_073_741_824,
        description="Bytes of the largest body of a request that the admin reads.",
    )
    admin_streams: int = Field(
        default=50, ge=1, le=100_000, description="Clients that may follow the admin's events at once, in each process."
    )
    admin_streams_per_principal: int = Field(
        default=10, ge=1, le=100_000, description="How many of them one principal may have."
    )
    admin_reads_per_principal: int = Field(
        default=4,
        ge=1,
        le=1_000,
        description="Requests of one principal to the admin that read and are answered at a time; others wait.",
    )
    admin_error_text: Literal["viewer", "operator"] = Field(
        default="viewer",
        description="The role from which on the admin shows messages and tracebacks of errors, masked; `operator`: "
        "viewers see that there are some.",
    )
    audit_retention: Annotated[timedelta | Literal["NEVER"], BeforeValidator(_retention_or_never)] = Field(
        default=timedelta(days=365), description="How long it is known who did what in the admin; `NEVER` forgets nothing."
    )
    example: bool | None = Field(
        default=None,
        description="Whether the worked example runs: `/orders`, which is open to everybody, its tables and its consumers. "
        "Unset: only where `OUTBOX_DATABASE_URL` is not set either.",
    )
    development: bool | None = Field(
        default=None,
        description="Whether a token for the admin is made at the start and shown on the terminal. "
        "Unset: with `python -m app` only, where `OUTBOX_ADMIN_TOKENS` is not set.",
    )

    http_host: str = Field(default="127.0.0.1", description="The address that `python -m app` listens on.")
    http_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="The port that `python -m app` listens on. Unset: 8000, or the next free one.",
    )
    monitoring_host: str = Field(
        default="127.0.0.1",
        description="The address on which `outbox relay` and `outbox worker` serve metrics and health.",
    )
    monitoring_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="The port for that; 0 serves nothing. "
        "Unset: 9101 for the relay, 9102 for the worker, 9103 for the archiver.",
    )
    docs: bool = Field(default=True, description="Whether `/docs` shows the API to people, without asking who they are.")
    metrics: bool = Field(default=True, description="Whether metrics are gathered, and served under `/metrics`.")
    metrics_token: SecretStr | None = Field(
        default=None,
        description="What `/metrics` of the service asks for, as `Authorization: Bearer …`. Unset: it is open.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="How much is logged.")
    log_format: Literal["text", "json"] = Field(
        default="text",
        description="As what: `text`, lines for people, or `json`, an object a line with ids and names apart.",
    )

    @field_validator("run")
    @classmethod
    def _runs_something(cls, value: frozenset[Runs]) -> frozenset[Runs]:
        if not value:
            raise ValueError(f"name at least one of {', '.join(Runs)}")
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

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

    @property
    def runs_example(self) -> bool:
        """Whether the worked example runs: in development, unless somebody says so."""
        return self.database_url is None if self.example is None else self.example

    @property
    def worker_consumers(self) -> str | None:
        """What the worker runs; None where there is nothing to run."""
        return self.consumers or (EXAMPLE_CONSUMERS if self.runs_example else None)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        for contradiction in self._contradictions():
            raise ValueError(contradiction)
        return self

    def _contradictions(self) -> Iterator[str]:
        if self.data_dir is not None and self.database_url is not None:
            yield "OUTBOX_DATA_DIR is for the embedded server, which OUTBOX_DATABASE_URL replaces: unset one of them"
        if self.listen_url is not None and self.database_url is None:
            yield "OUTBOX_LISTEN_URL is another way to the database of OUTBOX_DATABASE_URL, which is not set"
        if self.metrics_token is not None and not self.metrics:
            yield "OUTBOX_METRICS_TOKEN guards metrics that OUTBOX_METRICS turns off: unset one of them"
        if "run" in self.model_fields_set and Runs.WORKER in self.run and self.worker_consumers is None:
            yield "OUTBOX_RUN names the worker, which has nothing to run: set OUTBOX_CONSUMERS, or OUTBOX_EXAMPLE"
        if self.development and self.admin_tokens:
            yield "OUTBOX_DEVELOPMENT makes a token for the admin beside those of OUTBOX_ADMIN_TOKENS: unset one of them"
        if self.health_overdue_after < self.health_late_after:
            yield "OUTBOX_HEALTH_OVERDUE_AFTER is shorter than OUTBOX_HEALTH_LATE_AFTER: late comes first"
        if self.clean_up_after not in ("IMMEDIATELY", "NEVER") and self.clean_up_after == timedelta(0):
            yield "OUTBOX_CLEAN_UP_AFTER of no time is called IMMEDIATELY"


def read_settings(**given: Any) -> Settings:
    """The settings that the environment names, those `given` taking precedence.

    Raises `ConfigurationError`, one sentence for each wrong variable, without any value that may be secret.
    """
    check_environment()
    fields = {name: name.removeprefix(PREFIX).lower() for name in SECRETS - OF_COMMANDS}
    secrets = {field: value for name, field in fields.items() if (value := secret(name))}
    try:
        return Settings(**secrets | given)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_sentences(error))) from None


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        message = redacted(problem["msg"].removeprefix("Value error, "))
        name = str(problem["loc"][0]) if problem["loc"] else ""
        yield f"{PREFIX}{name.upper()}: {message}" if name else message
