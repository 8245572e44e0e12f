"""Options that several commands share, with the environment variables that they default to."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from outbox.cli.command import CliError
from outbox.core.duration import as_delay, as_retention
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
        """The time that `value` names."""
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
    """Days (`30d`), hours (`12h`), or what seconds can be."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The time that `value` names."""
        try:
            return as_retention(value)
        except DurationError:
            return super().convert(value, param, ctx)


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a row of the table of settings knows how to read."""

    def __init__(self, row: Setting) -> None:
        self.name = row.kind.value
        self._row = row

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that the text names."""
        if not isinstance(value, str):
            return value
        try:
            return self._row.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class PastTime(click.ParamType):  # type: ignore[type-arg]
    """A date, a date and time, or how long ago: `2030-01-31`, `2030-01-31T12:00Z`, `2h`. Without a zone: local time."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time that `value` names."""
        if isinstance(value, datetime):
            return value
        if ago := _AGO.fullmatch(value):
            return datetime.now(UTC) - timedelta(**{_AGO_UNITS[ago["unit"]]: int(ago["count"])})
        try:
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
        """The time that `value` names."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return datetime.now(UTC) + RETENTION.convert(value, param, ctx)
        if found.tzinfo is None:
            self.fail(f"{value!r} names no time zone: write {value}Z for UTC", param, ctx)
        return found


SECONDS = Seconds()
RETENTION = Retention()
PAST_TIME = PastTime()
FUTURE_TIME = FutureTime()
json_output = click.option("--json", "as_json", is_flag=True, help="Print what the API answers, for scripts.")


class _Secret(click.Option):
    """An option whose value may be in the file that `OUTBOX_<NAME>_FILE` names."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value, or the file's."""
        del ctx
        try:
            return secret(str(self.envvar))
        except ConfigurationError as error:
            raise CliError(str(error)) from error


def setting(name: str, **attributes: Any) -> Callable[[F], F]:
    """The option `--<name>` of a row of the table of settings: its variable sets it as well, and the row's words explain it.

    `attributes` are what is different about the option of one command.
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
    return click.option(f"--{name.replace('_', '-')}", name, **given | attributes)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which they are to be shown."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


database = together(setting("database_url", show_default=False), setting("table_name"))
broker = together(setting("broker_url"), setting("exchange_name"))
masking = together(setting("mask_keys"), setting("mask_paths"))
health = together(*(setting(name) for name in SETTINGS if name.startswith("health_")))


def process(reader: Reader, *, port: int) -> Callable[[F], F]:
    """The options of a command that runs until it is asked to end: one for each setting that it reads, in the table's order.

    `port` is that of metrics and health, or a free one, if none is asked for. A worker's consumers are an argument.
    """
    attributes: dict[str, dict[str, Any]] = {
        "database_url": {"show_default": False},
        "monitoring_port": {"show_default": f"{port}, or a free port"},
    }
    names = [name for name, each in SETTINGS.items() if reader in each.readers and name != "consumers"]
    return together(*(setting(name, **attributes.get(name, {})) for name in names))
