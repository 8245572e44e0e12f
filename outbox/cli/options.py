"""Option types, and options that several commands share, with their environment variables."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from outbox.cli.command import CliError
from outbox.core.duration import as_delay, as_retention
from outbox.core.urls import postgres_url, server_kind
from outbox.errors import ConfigurationError, DurationError
from outbox.runtime.environment import secret
from outbox.runtime.settings import SETTINGS, Kind, Reader, Setting

F = TypeVar("F", bound=Callable[..., Any])

_AGO = re.compile(r"(?P<count>\d{1,6})(?P<unit>[smhd])", re.ASCII)
_AGO_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """Seconds as a number, or a duration such as `1m30s`."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parses the time."""
        if isinstance(value, timedelta):
            return value
        number: float | str = value
        with suppress(ValueError):
            number = float(value)
        try:
            return as_delay(number)
        except DurationError as error:
            self.fail(str(error), param, ctx)


class Retention(Seconds):
    """Days (`30d`), hours (`12h`), or a value of `Seconds`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parses the time."""
        try:
            return as_retention(value)
        except DurationError as error:
            try:
                return super().convert(value, param, ctx)
            except click.BadParameter:
                self.fail(str(error), param, ctx)


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a row of the settings table parses."""

    def __init__(self, row: Setting) -> None:
        self.name = row.kind.value
        self._row = row

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parses the text."""
        if not isinstance(value, str):
            return value
        if value == self._row.default:
            # Pydantic's first validation looks for plugins in all installed packages, which takes some 100 ms.
            return self._row.field.default
        try:
            return self._row.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class PastTime(click.ParamType):  # type: ignore[type-arg]
    """A date, a date and time, or how long ago: `2030-01-31`, `2030-01-31T12:00Z`, `2h`. Without a zone: local time."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parses the time."""
        if isinstance(value, datetime):
            return value
        try:
            if ago := _AGO.fullmatch(value):
                return datetime.now(UTC) - timedelta(**{_AGO_UNITS[ago["unit"]]: int(ago["count"])})
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time: write 2030-01-31, 2030-01-31T12:00Z, or how long ago, such as 90s, 2h, 3d",
                param,
                ctx,
            )


class FutureTime(click.ParamType):  # type: ignore[type-arg]
    """A time with its zone, as `2030-01-31T12:00:00Z`, or a duration from now."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parses the time."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            try:
                return datetime.now(UTC) + RETENTION.convert(value, param, ctx)
            except (click.BadParameter, OverflowError):
                self.fail(
                    f"{value!r} is not a time: write 2030-01-31T12:00Z, or how long from now, such as 90s, 2h, 3d", param, ctx
                )
        if found.tzinfo is None:
            self.fail(f"{value!r} has no time zone: write {value}Z for UTC", param, ctx)
        try:
            return found.astimezone(UTC)
        except OverflowError:
            self.fail(f"{value!r} is out of range in UTC", param, ctx)


SECONDS = Seconds()
RETENTION = Retention()
PAST_TIME = PastTime()
FUTURE_TIME = FutureTime()
json_output = click.option("--json", "as_json", is_flag=True, help="Print the API's response as JSON.")


class _Secret(click.Option):
    """An option whose value may come from the file that `OUTBOX_<NAME>_FILE` names."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Returns the value of the variable, or the content of the file."""
        del ctx
        try:
            return secret(str(self.envvar))
        except ConfigurationError as error:
            raise CliError(str(error)) from error


_URLS: Mapping[str, Callable[..., object]] = {
    "database_url": postgres_url,
    "listen_url": postgres_url,
    "broker_url": server_kind,
}


def check_urls(given: Mapping[str, Any]) -> None:
    """Refuses the URL of another kind of server, with the name by which the user gave it."""
    ctx = click.get_current_context()
    for name, check in _URLS.items():
        if url := given.get(name):
            is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            check(url, argument=f"--{name.replace('_', '-')}" if is_typed else SETTINGS[name].variable)


def _checked_url(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    # With --url a command does not use these, so it checks them itself when it does.
    if not any(each.name == "url" for each in ctx.command.params):
        try:
            check_urls({str(param.name): value})
        except ConfigurationError as error:
            raise CliError(str(error)) from error
    return value


def setting(name: str, *, flag: str | None = None, **attributes: Any) -> Callable[[F], F]:
    """Creates an option from a row of the settings table, with its environment variable, default and help.

    The option is `flag`, by default `--<name>`. `attributes` override those of the row.
    """
    row = SETTINGS[name]
    type_: click.ParamType[Any] | type[bool] | None
    match row.kind:
        case Kind.SWITCH:
            type_ = bool
        case Kind.NUMBER:
            type_ = click.IntRange(*row.bounds)
        case Kind.CHOICE:
            type_ = click.Choice(row.choices, case_sensitive=False)
        case Kind.TEXT:
            type_ = None
        case _:
            type_ = Parsed(row)
    given: dict[str, Any] = {
        "envvar": row.variable,
        "show_envvar": True,
        "default": row.default,
        "show_default": row.unset.replace("`", "") or True,
        "type": type_,
        "help": row.help.replace("`", ""),
    }
    if row.secret:
        given["cls"] = _Secret
    if name in _URLS:
        given["callback"] = _checked_url
    return click.option(flag or f"--{name.replace('_', '-')}", name, **given | attributes)


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combines options into one decorator, in the order of `--help`."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


database = combine(setting("database_url", show_default=False), setting("table_name"))
broker = combine(setting("broker_url"), setting("exchange_name"))
masking = combine(setting("mask_keys"), setting("mask_paths"), setting("encryption_keys"), setting("large_bodies_url"))
health = combine(*(setting(name) for name in SETTINGS if name.startswith("health_")))


several_databases = click.option(
    "--database",
    multiple=True,
    metavar="[NAME=]URL",
    help="One of several databases that this process serves, instead of --database-url; repeat it. "
    "The name is by default that of the database.",
)


def process(reader: Reader, *, port: int) -> Callable[[F], F]:
    """Returns the options of a long-running command: one for each setting that it reads, in the order of the table.

    `port` is the default port of metrics and health. A worker's consumers are an argument instead of an option.
    """
    attributes: dict[str, dict[str, Any]] = {
        "database_url": {"show_default": False},
        "databases_file": {"flag": "--databases", "metavar": "FILE"},
        "monitoring_port": {"show_default": f"{port}, or a free port"},
    }
    names = [name for name, each in SETTINGS.items() if reader in each.readers and name != "consumers"]
    return combine(several_databases, *(setting(name, **attributes.get(name, {})) for name in names))
