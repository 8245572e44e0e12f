"""Options that several commands share, with the environment variables that they default to."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from outbox.cli.command import Sentence
from outbox.cli.logs import FORMATS
from outbox.core.arguments import LARGEST_NUMBER
from outbox.core.byte_limits import MAX_BATCH_BYTES, MAX_BODY_BYTES
from outbox.core.duration import as_delay, as_retention
from outbox.errors import ConfigurationError, DurationError
from outbox.runtime.environment import KNOWN, PREFIX, SECRETS, secret

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """Seconds as a number, or a duration such as `1m30s`."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The time that `value` names."""
        if isinstance(value, timedelta):
            return value
        try:
            return as_delay(_number(value))
        except DurationError as error:
            self.fail(str(error), param, ctx)


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


class CleanUp(Seconds):
    """`IMMEDIATELY`, `NEVER`, or a time."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The strategy that `value` names."""
        if isinstance(value, str) and value.upper() in ("IMMEDIATELY", "NEVER"):
            return value.upper()
        return super().convert(value, param, ctx)


class Delays(click.ParamType):  # type: ignore[type-arg]
    """Durations separated by commas, or `none`."""

    name = "delays"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[timedelta, ...]:
        """The delays, in order."""
        if isinstance(value, tuple):
            return value
        if value == "none":
            return ()
        return tuple(SECONDS.convert(part.strip(), param, ctx) for part in value.split(","))


class Retention(Seconds):
    """Days (`30d`), hours (`12h`), or what seconds can be."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The time that `value` names."""
        try:
            return as_retention(value)
        except DurationError:
            return super().convert(value, param, ctx)


class RetentionOrNever(Retention):
    """The same, or `NEVER` for what is never deleted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The time that `value` names; None for never."""
        return None if isinstance(value, str) and value.upper() == "NEVER" else super().convert(value, param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names, in order."""
        del param, ctx
        return value if isinstance(value, tuple) else tuple(part.strip() for part in value.split(",") if part.strip())


SECONDS = Seconds()
RETENTION = Retention()
RETENTION_OR_NEVER = RetentionOrNever()
CLEAN_UP = CleanUp()
DELAYS = Delays()
NAMES = Names()


class _Secret(click.Option):
    """An option whose value may be in the file that `OUTBOX_<NAME>_FILE` names."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value, or the file's."""
        del ctx
        try:
            return secret(str(self.envvar))
        except ConfigurationError as error:
            raise Sentence(str(error)) from error


def setting(name: str, **attributes: Any) -> Callable[[F], F]:
    """The option `--<name>`, which `OUTBOX_<NAME>` sets as well."""
    variable = PREFIX + name.upper()
    assert variable in KNOWN, f"{variable} is missing in outbox.runtime.environment.KNOWN"  # noqa: S101 — holds at import, always
    attributes = {"envvar": variable, "show_envvar": True, "show_default": True, **attributes}
    if variable in SECRETS:
        attributes["cls"] = _Secret
    return click.option(f"--{name.replace('_', '-')}", name, **attributes)


max_batch_bytes = setting(
    "max_batch_bytes",
    type=click.IntRange(1, LARGEST_NUMBER),
    default=MAX_BATCH_BYTES,
    help="Bytes of the messages in memory at once; a single message may be larger.",
)
max_body_bytes = setting(
    "max_body_bytes",
    type=click.IntRange(1, LARGEST_NUMBER),
    default=MAX_BODY_BYTES,
    help="Bytes of the largest message that is fetched from the database.",
)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which they are to be shown."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


database = together(
    setting("database_url", help="The database, as postgresql://user:password@host:5432/database."),
    setting("table_name", default="outbox_table", help="The outbox table, as table or schema.table."),
)
broker = together(
    setting("broker_url", help="RabbitMQ, as amqp://user:password@host:5672/vhost; unset: the database does its work."),
    setting("exchange_name", default="outbox", help="The exchange of the events."),
)
process = together(
    setting("grace_period", type=SECONDS, default="30", help="How long what runs may take to finish at the end."),
    setting("metrics", default=True, type=bool, help="Whether metrics are gathered."),
    setting("monitoring_host", default="127.0.0.1", help="The address on which metrics and health are served."),
    setting(
        "log_level",
        type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
        default="INFO",
        help="How much is logged.",
    ),
    setting(
        "log_format",
        type=click.Choice(FORMATS, case_sensitive=False),
        default="text",
        help="As what: lines for people, or JSON with ids and names apart.",
    ),
)
masking = together(
    setting("mask_keys", type=NAMES, help="Further keys whose values are hidden from previews and searches of dead letters."),
    setting("mask_paths", type=NAMES, help="Places in bodies that are hidden likewise, as in $.customer.email,$.items[*].id."),
)
reports = together(
    setting("name", help="How operators know it.  [default: host:pid]"),
    setting("reporting", default=True, type=bool, help="Whether it tells the database what it does, and heeds pauses."),
    setting("history", default=True, type=bool, help="Whether what becomes of each message is written down."),
    setting("heartbeat_interval", type=SECONDS, default="5", help="How often it gives a sign of life."),
)


health = together(
    setting("health_late_after", type=SECONDS, default="60", help="Age of a waiting message that is a warning."),
    setting("health_overdue_after", type=SECONDS, default="300", help="Age of a waiting message that is an error."),
    setting("health_queue_depth", type=click.IntRange(1, LARGEST_NUMBER), default=10_000, help="Messages in a deep queue."),
    setting("health_lost_for", type=SECONDS, default="900", help="How long a lost component counts."),
    setting("health_dead_letter_window", type=SECONDS, default="3600", help="How long a dead letter is new."),
)


def monitoring_port(default: int) -> Callable[[F], F]:
    """The port of metrics and health; `default`, or a free one, if none is asked for."""
    return setting(
        "monitoring_port",
        type=click.IntRange(0, 65_535),
        help=f"The port of metrics and health; 0 serves nothing.  [default: {default}, or a free one]",
    )
