"""`Admin`: the configuration, connections and caches that all routes share, and the thresholds of the health verdict."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from string import Formatter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, cast, get_args
from urllib.parse import quote, urlsplit

from outbox.admin.principals import Role, Tokens
from outbox.admin.problems import NotOpenError
from outbox.contracts import by_routing_key
from outbox.core.arguments import at_least_one, body_tools, exactly_one, one_of
from outbox.core.arguments import exchange_name as checked_exchange_name
from outbox.core.urls import postgres_url
from outbox.dead_letters import INBOX_RETENTION, DeadLetters
from outbox.engine.bodies import Bodies
from outbox.errors import ConfigurationError
from outbox.masking import Masking
from outbox.postgres.pool import Connection, Pool, close_pool, open_pool, taken_from, unavailable_errors
from outbox.postgres.schema.objects import outbox_table

if TYPE_CHECKING:
    from outbox.admin.alerts.rules import AlertRules
    from outbox.admin.oidc import OpenIDConnect
    from outbox.contracts import Event
    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies
    from outbox.ports import Broker

_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthThresholds:
    """Limits above which the health verdict reports a finding.

    A message that waits for a relay or a worker, or is held or stalled, is a warning after `late_after` and an error after
    `overdue_after`. A queue with more than `queue_depth` messages is deep. A lost component is reported for `lost_for`, or
    until another of its kind starts. Open dead letters are an error while the newest is younger than `dead_letter_window`,
    then a warning.

    Raises `ConfigurationError` if a time is not positive, or `overdue_after` is below `late_after`.
    """

    late_after: timedelta = timedelta(seconds=60)
    overdue_after: timedelta = timedelta(minutes=5)
    queue_depth: int = 10_000
    lost_for: timedelta = timedelta(minutes=15)
    dead_letter_window: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        for name in ("late_after", "overdue_after", "lost_for", "dead_letter_window"):
            if getattr(self, name) <= timedelta(0):
                raise ConfigurationError(f"{name} must be above 0, not {getattr(self, name)}")
        if self.overdue_after < self.late_after:
            raise ConfigurationError(f"overdue_after ({self.overdue_after}) must not be below late_after ({self.late_after})")
        at_least_one("queue_depth", self.queue_depth)


class Closable(Protocol):
    """An object that the admin closes."""

    async def close(self) -> None:
        """Stops its tasks and releases its resources."""
        ...


S = TypeVar("S", bound=Closable)

POOL_SIZE = 5
"""Connections for reads, per process."""
CHANGES_POOL_SIZE = 3
"""Connections for changes, and for the reads that authenticate them, per process."""
STREAMS = 50
STREAMS_EACH = 10
READS_EACH = 4
MOST_STREAMS = 100_000
"""Upper limit of `streams`: event streams per process."""
READ_TIMEOUT = timedelta(seconds=10)
"""Statement timeout, which bounds how long a request keeps a connection."""
SESSION_LIFETIME = timedelta(hours=12)
"""Lifetime of a browser session."""
LONGEST_ENVIRONMENT = 40
"""Characters of an environment's name, which the dashboard shows in its header."""
BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest accepted request body. Fits an edited message in base64."""


Colour = Literal["red", "amber", "green", "blue", "grey"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The name of an installation, and the colour in which the dashboard shows it."""

    name: str
    colour: Colour = "grey"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `production` or `production:red`. Raises `ConfigurationError` for other forms."""
        name, colon, colour = text.rpartition(":")
        if not colon:
            name, colour = text, "grey"
        known = next((each for each in get_args(Colour) if each == colour), None)
        if known is None or not (0 < len(name) <= LONGEST_ENVIRONMENT and name.isprintable() and name == name.strip()):
            raise ConfigurationError(
                f"environment must be 1 to {LONGEST_ENVIRONMENT} characters, optionally with a colour, as in production:red "
                f"({', '.join(get_args(Colour))}), not {text!r}"
            )
        return cls(name, known)


_PLACEHOLDERS = ("message_id", "root_id", "queue", "routing_key", "trace_id")


@dataclass(frozen=True, slots=True)
class LinkTemplate:
    """URL template of another system, such as `https://logs.example/?q={message_id}`."""

    text: str

    @classmethod
    def parse(cls, text: str, argument: str) -> Self:
        """Parses a template. Raises `ConfigurationError` if it is no HTTP URL, has credentials, or an unknown placeholder."""
        try:
            fields = [
                f"{name}{spec}{conversion or ''}" for _, name, spec, conversion in Formatter().parse(text) if name is not None
            ]
            parts = urlsplit(text.format(**dict.fromkeys(_PLACEHOLDERS, "x")))
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        except (ValueError, KeyError, IndexError, AttributeError):
            fits, fields = False, []
        if not fits or not fields or not set(fields) <= set(_PLACEHOLDERS):
            raise ConfigurationError(
                f"{argument} must be an https://… URL without credentials, with one or more of "
                f"{', '.join(f'{{{name}}}' for name in _PLACEHOLDERS)}, as in https://logs.example/?q={{message_id}}"
            )
        return cls(text)

    def render(self, facts: Mapping[str, str | None]) -> str | None:
        """Fills in the placeholders; None if a value is missing."""
        given = {name: quote(value, safe="") for name, value in facts.items() if value}
        try:
            return self.text.format(**given)
        except KeyError:
            return None


class Admin:
    """Reads and repairs the messages of one outbox table, for the routes of `admin_router`.

    Pass exactly one of `db_engine_url` and `db_pool` (asyncpg). The pool stays open on exit. `broker` is an `amqp(s)://` URL, a
    `postgresql://` URL, or an object that implements `outbox.ports.Broker`; None: PostgreSQL itself is the broker.
    `management_url` is RabbitMQ's HTTP API, for depths and bindings.

    `tokens` are the accepted tokens, as `outbox token` prints them: `name:role:hash`. `oidc` is a provider for logins with a
    browser. Without either, and without an authentication dependency of the host, every request is refused. A browser session
    ends after `session_lifetime`. `read_only` refuses all changes, for every role. `error_text` is the lowest role that sees
    error texts, masked; `masking` configures masking.

    `body_limit` is the largest accepted request body, in bytes. Per process, at most `streams` clients follow `GET /events`,
    at most `streams_per_principal` for one principal, and one principal runs at most `reads_per_principal` reads at a time.

    `environment` is shown on every page of the dashboard: `production` or `production:red`. `thresholds` are those of the
    health verdict. `alerts` configures alerts; an `Alerting` sends them. `log_url` and `trace_url` are URL templates of other
    systems, with `{message_id}`, `{root_id}`, `{queue}`, `{routing_key}` or `{trace_id}`, as in
    `https://logs.example/?q={message_id}`. The trace id is that of the message, or of the attempt that the link is for.
    `published_events` are the typed events that the service publishes, for `GET /asyncapi`. `encryption`, an
    `outbox.encryption.Encryption`, decrypts bodies that operators reveal or download, and encrypts what they publish, and edits
    of encrypted bodies. `large_bodies`, an `outbox.large_bodies.LargeBodies`, fetches and stores large ones in the same cases.

    Enter it in the application's lifespan, before requests arrive: `async with admin: …`.
    """

    def __init__(
        self,
        db_engine_url: str | None = None,
        db_pool: Pool | None = None,
        table_name: str = "outbox_table",
        *,
        broker: "str | Broker | None" = None,
        exchange_name: str = "outbox",
        management_url: str | None = None,
        tokens: Iterable[str] = (),
        environment: str | None = None,
        read_only: bool = False,
        session_lifetime: timedelta = SESSION_LIFETIME,
        body_limit: int = BODY_LIMIT,
        streams: int = STREAMS,
        streams_per_principal: int = STREAMS_EACH,
        reads_per_principal: int = READS_EACH,
        masking: Masking | None = None,
        error_text: Role | str = Role.VIEWER,
        inbox_retention: timedelta = INBOX_RETENTION,
        history: bool = True,
        thresholds: HealthThresholds | None = None,
        alerts: "AlertRules | None" = None,
        log_url: str | None = None,
        trace_url: str | None = None,
        oidc: "OpenIDConnect | None" = None,
        published_events: "Iterable[Event[Any]]" = (),
        encryption: "Encryption | None" = None,
        large_bodies: "LargeBodies | None" = None,
    ) -> None:
        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        if session_lifetime <= timedelta(0):
            raise ConfigurationError(f"session_lifetime must be above 0, not {session_lifetime}")
        if body_limit < 1_024:
            raise ConfigurationError(f"body_limit must be at least 1,024 bytes, not {body_limit}")
        body_tools(encryption=encryption, large_bodies=large_bodies)
        self.table = outbox_table(table_name)
        self.broker = broker
        self.exchange_name = checked_exchange_name(exchange_name)
        self.management_url = management_url
        self.tokens = Tokens.parse(tokens)
        self.oidc = oidc
        self.environment = None if environment is None else Environment.parse(environment)
        self.read_only = read_only
        self.session_lifetime = session_lifetime
        self.body_limit = body_limit
        self.streams = at_least_one("streams", streams, most=MOST_STREAMS, because="each holds a connection")
        self.streams_per_principal = at_least_one("streams_per_principal", streams_per_principal, most=MOST_STREAMS)
        self.reads_per_principal = at_least_one("reads_per_principal", reads_per_principal)
        self.masking = masking or Masking()
        self.thresholds = thresholds or HealthThresholds()
        self.alerts = alerts
        self.published_events = tuple(by_routing_key(published_events).values())
        self.bodies = Bodies(encryption, large_bodies)
        self._log_url = None if log_url is None else LinkTemplate.parse(log_url, "log_url")
        self._trace_url = None if trace_url is None else LinkTemplate.parse(trace_url, "trace_url")
        self.error_text = Role(one_of("error_text", error_text, list(Role)))
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._given_pool = db_pool
        self._inbox_retention = inbox_retention
        self._history = history
        self._closing = AsyncExitStack()
        self._shared: dict[Any, Closable] = {}
        self._pool: Pool | None = None
        self._changes: Pool | None = None
        self._dead_letters: DeadLetters | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._pool = self._given_pool or await self._open_pool(stack, POOL_SIZE)
            # Changes have separate connections: a repair must not wait for slow reads.
            self._changes = self._given_pool or await self._open_pool(stack, CHANGES_POOL_SIZE)
            self._dead_letters = await stack.enter_async_context(
                DeadLetters(
                    db_pool=self._changes,
                    table_name=str(self.table),
                    broker=self.broker,
                    exchange_name=self.exchange_name,
                    inbox_retention=self._inbox_retention,
                    history=self._history,
                    masking=self.masking,
                    encryption=self.bodies.encryption,
                    large_bodies=self.bodies.large_bodies,
                )
            )
            if self.bodies.large_bodies is not None:
                await stack.enter_async_context(self.bodies.large_bodies.opened())
            self._closing = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shared = {}
        self._pool = self._changes = self._dead_letters = None
        await self._closing.aclose()

    @property
    def pool(self) -> Pool:
        """Connections for reads. Raises `ConfigurationError` unless the admin is open."""
        if self._pool is None:
            raise NotOpenError
        return self._pool

    @property
    def _for_changes(self) -> Pool:
        return self._changes or self.pool

    async def _open_pool(self, stack: AsyncExitStack, size: int) -> Pool:
        pool = await open_pool(self._url or "", size=size, application_name="outbox admin")
        stack.push_async_callback(close_pool, pool)
        return pool

    def external(self, **facts: str | None) -> dict[str, str | None]:
        """Returns `log_url` and `trace_url` of a message or an attempt; None if not configured, or if a value is missing.

        `facts` are the values of the placeholders.
        """
        templates = {"log_url": self._log_url, "trace_url": self._trace_url}
        return {name: None if template is None else template.render(facts) for name, template in templates.items()}

    @property
    def dead_letters(self) -> DeadLetters:
        """Reads and repairs dead letters. Raises `ConfigurationError` unless the admin is open."""
        if self._dead_letters is None:
            raise NotOpenError
        return self._dead_letters

    def shared(self, kind: "Callable[[Admin], S]") -> S:
        """Returns the one `kind(self)` that all requests share. Creates it on first use, and closes it with the admin."""
        if self._pool is None:
            raise NotOpenError
        if kind not in self._shared:
            self._shared[kind] = instance = kind(self)
            self._closing.push_async_callback(instance.close)
        return cast("S", self._shared[kind])

    @asynccontextmanager
    async def reading(self, doing: str, *, for_change: bool = False) -> AsyncIterator[Connection]:
        """Opens a read-only transaction; each statement may take `READ_TIMEOUT`.

        `for_change` uses the connections of changes, which slow reads cannot delay: for authentication, for example.
        """
        with unavailable_errors(doing):
            async with (
                taken_from(self._for_changes if for_change else self.pool) as connection,
                connection.transaction(readonly=True),
            ):
                await connection.execute(_READING, timeout=READ_TIMEOUT.total_seconds())
                yield connection

    @asynccontextmanager
    async def changing(self, doing: str) -> AsyncIterator[Connection]:
        """Opens a transaction, and commits it at the end of the block."""
        with unavailable_errors(doing):
            async with taken_from(self._for_changes) as connection, connection.transaction():
                await connection.execute(_BOUNDED, timeout=READ_TIMEOUT.total_seconds())
                yield connection


# The server ends the session of a service that is frozen, or whose host is gone: it would hold back vacuum, and keep its locks.
_BOUNDED = (
    f"set local statement_timeout = {int(READ_TIMEOUT.total_seconds() * 1_000)}; set local lock_timeout = '5s'; "
    "set local idle_in_transaction_session_timeout = '1min'"
)
# JIT compilation takes longer than most of these statements, and parallel workers would take processors from other clients.
# The planner overestimates the number of groups: with less memory it would sort all rows on disk instead of hashing them.
_READING = f"{_BOUNDED}; set local jit = off; set local max_parallel_workers_per_gather = 0; set local work_mem = '32MB'"
