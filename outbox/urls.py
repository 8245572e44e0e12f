"""URLs as users write them: which server they name, normalised for the driver, and without their secrets."""

import re
from enum import StrEnum
from urllib.parse import urlsplit

from outbox.errors import UrlError

_POSTGRES_SCHEMES = frozenset(
    {
        "postgresql",
        "postgres",
        "postgresql+asyncpg",
        "postgresql+psycopg",
        "postgresql+psycopg2",
        "postgresql+psycopg_async",
    }
)
_AMQP_SCHEMES = frozenset({"amqp", "amqps"})
_CREDENTIALS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<user>[^:/?#\s]*):(?P<password>[^\s/?#]*)@", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(r"(?P<name>[?&](?:password|passwd|sslpassword|secret|token)=)[^&#\s]+", re.IGNORECASE)


class ServerKind(StrEnum):
    """The servers that a URL can name."""

    POSTGRES = "postgresql"
    AMQP = "amqp"


def server_kind(url: str, *, argument: str = "url") -> ServerKind:
    """Which kind of server `url` names. Raises `UrlError`, naming `argument` and not the URL's secrets."""
    scheme = _scheme(url, argument)
    if scheme in _POSTGRES_SCHEMES:
        return ServerKind.POSTGRES
    if scheme in _AMQP_SCHEMES:
        return ServerKind.AMQP
    raise UrlError(
        f"{argument} has the scheme {scheme!r}: write postgresql://user:password@host:5432/database "
        f"or amqp://user:password@host:5672/vhost"
    )


def postgres_url(url: str, *, argument: str = "db_engine_url") -> str:
    """`url` in the plain `postgresql://` spelling. Raises `UrlError` for any other kind of server."""
    if server_kind(url, argument=argument) is not ServerKind.POSTGRES:
        raise UrlError(f"{argument} must be a postgresql:// URL, not {_scheme(url, argument)}://")
    return "postgresql" + url[url.index("://") :]


def amqp_url(url: str, *, argument: str = "rmq_connection_url") -> str:
    """`url` as it is, if it names a RabbitMQ. Raises `UrlError` for any other kind of server."""
    if server_kind(url, argument=argument) is not ServerKind.AMQP:
        raise UrlError(f"{argument} must be an amqp:// or amqps:// URL, not {_scheme(url, argument)}://")
    return url


def redacted(text: str) -> str:
    """`text` with the password of every URL in it replaced by `***`; safe for logs and errors."""
    text = _CREDENTIALS.sub(lambda match: f"{match['scheme']}{match['user']}:***@", text)
    return _SECRET_PARAMETER.sub(lambda match: f"{match['name']}***", text)


def _scheme(url: object, argument: str) -> str:
    if not isinstance(url, str):
        raise UrlError(f"{argument} must be a URL as text, not {type(url).__name__}")
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError as error:
        raise UrlError(f"{argument} is not a URL: {error}") from None
    if "://" not in url or not scheme:
        raise UrlError(f"{argument} is not a URL: it has no scheme such as postgresql:// or amqp://")
    return scheme
