"""Options that say whom commands ask: a service, or the database."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from outbox.cli import options
from outbox.cli.options import SECONDS
from outbox.errors import ConfigurationError
from outbox.runtime.environment import secret
from outbox.runtime.settings import PREFIX

URL, TOKEN = f"{PREFIX}URL", f"{PREFIX}TOKEN"
NOWHERE = f"say which database: --database-url, or OUTBOX_DATABASE_URL; or which service: --url, or {URL}"

service = options.together(
    click.option(
        "--url",
        envvar=URL,
        show_envvar=True,
        help=f"A running service, as https://host/outbox, instead of the database; {TOKEN} is the token.",
    ),
    click.option(
        "--timeout",
        type=SECONDS,
        default="30",
        show_default=True,
        help="With --url: how long an answer may take, in seconds.",
    ),
)
"""Where a service is."""
places = options.together(
    options.database,
    options.broker,
    options.setting("management_url", help="RabbitMQ's HTTP API, http://user:password@host:15672, for the depths of queues."),
    options.masking,
    service,
)
"""All that an admin works with, or where one is."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A service: its address, the token that it is asked with, and how long each answer may take."""

    url: str
    token: str | None
    timeout: timedelta


def remote(given: dict[str, Any]) -> Remote | None:
    """The service that the options name; None: the database. What was typed counts for more than the environment.

    Raises `ConfigurationError` for an address that cannot be one, and a usage error for two places.
    """
    url, database_typed = given["url"], typed("database_url")
    if database_typed and typed("url"):
        raise click.UsageError("--url and --database-url are two places: give one of them")
    if not url or database_typed:
        return None
    _refuse_what_the_service_decides()
    return Remote(_checked(url), _token(), given["timeout"])


def _refuse_what_the_service_decides() -> None:
    """Nobody is to believe that such an option has an effect."""
    for name in (
        "broker_url",
        "exchange_name",
        "inbox_retention",
        "management_url",
        "mask_keys",
        "mask_paths",
        "table_name",
    ):
        if typed(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is for a database: with --url the service decides that")


def typed(name: str) -> bool:
    """Whether the option of that name is on the command line."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _token() -> str | None:
    token = (secret(TOKEN) or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"{TOKEN} is no token: it is what `outbox token` printed")
    return token or None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError("--url is not an address: write https://host/outbox") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"--url has a name or a password in it, where others can read it: {TOKEN} is the place for it")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigurationError("--url is the address of a service: write https://host/outbox")
    if parts.query or parts.fragment:
        raise ConfigurationError("--url ends with the admin's prefix, such as /outbox: leave out what follows it")
    return url.rstrip("/")
