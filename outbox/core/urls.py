"""URLs as users write them: which server they name, normalised for the driver, and without their secrets."""

import re
from enum import StrEnum
from urllib.parse import parse_qs, unquote, urlsplit

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
_USER = re.compile(r"://[^:\s]*:")
_PORT = re.compile(r"[0-9]{1,5}(?!\w)")
_SECRET_PARAMETER = re.compile(
    r"""(?P<name>(?:password|passwd|pwd)["']?\s*[=:]\s*|(?:secret|token)["']?\s*=\s*)       # of a URL, a DSN, a dict
        (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|['"][^\n]*|[^&\#\s'"]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)


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


def server_address(url: str) -> str:
    """Which server, and which database or virtual host, `url` names: without user, password and options."""
    parts = urlsplit(url)
    kind = server_kind(url)
    hosts = parts.netloc.rpartition("@")[2].lower()
    path = unquote(parts.path.removeprefix("/"))
    if kind is ServerKind.POSTGRES:
        named = parse_qs(parts.query)
        hosts = hosts or ",".join(named.get("host", ["localhost"]))
        return f"PostgreSQL at {_with_ports(hosts, 5432)}, database {path or ','.join(named.get('dbname', ['']))}"
    port = 5671 if parts.scheme.lower() == "amqps" else 5672
    return f"RabbitMQ at {_with_ports(hosts or 'localhost', port)}, virtual host {path or '/'}"


def _with_ports(hosts: str, port: int) -> str:
    """Each of several hosts with its port; a path is a socket."""
    return ",".join(
        host if re.search(r":[0-9]+$", host) or host.startswith("/") else f"{host}:{port}" for host in hosts.split(",")
    )


def redacted(text: str) -> str:
    """`text` with the passwords in it replaced by `***`, of URLs and of `password=…`; safe for logs and errors.

    Whatever a password contains, encoded or not, none of it remains, short of both a space and an @ that are not encoded. For
    that, what follows it may be cut as well.
    """
    return _SECRET_PARAMETER.sub(lambda match: f"{match['name']}***", without_passwords(text))


def without_passwords(text: str) -> str:
    """`text` with the passwords of the URLs in it replaced by `***`."""
    parts, rest = [], 0
    for word in re.finditer(r"\S+", text):
        if word.start() < rest or "://" not in word[0]:
            continue
        start, end = _password_in(text, word.start(), word.end())
        if start < end:
            parts.append(f"{text[rest:start]}***")
            rest = end
    return "".join(parts) + text[rest:]


def _password_in(text: str, word_start: int, word_end: int) -> tuple[int, int]:
    """Where the password of the URL in a word begins and ends; the same place twice if there is none.

    It ends with the last @ of the word, since there may be others in it. It may have spaces in it, and then ends with the last
    @ of the line; but what looks like a port is one.
    """
    line_end = text.find("\n", word_end)
    for user in _USER.finditer(text, word_start, word_end):
        start = user.end()
        at = text.rfind("@", start, word_end)
        if at < 0 and not _PORT.match(text, start):
            at = text.rfind("@", start, line_end if line_end >= 0 else len(text))
        if at >= 0:
            return start, at
    return word_start, word_start


def _scheme(url: object, argument: str) -> str:
    if not isinstance(url, str):
        raise UrlError(f"{argument} must be a URL as text, not {type(url).__name__}")
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        # What the parser says would repeat a part of the URL, which may be the password.
        raise UrlError(f"{argument} is not a URL: its host cannot be read") from None
    if "://" not in url or not scheme:
        raise UrlError(f"{argument} is not a URL: it has no scheme such as postgresql:// or amqp://")
    return scheme
