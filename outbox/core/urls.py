"""Parses database and broker URLs, normalises them for the drivers, and removes their secrets."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from outbox.errors import ConfigurationError, UrlError

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
_KAFKA_SCHEMES = frozenset({"kafka", "kafkas"})
_NATS_SCHEMES = frozenset({"nats", "natss"})
_REDIS_SCHEMES = frozenset({"redis", "rediss", "valkey", "valkeys"})
_AWS_SCHEMES = frozenset({"sqs", "sns"})
ROUTING_KEY_IN_TOPIC = "{routing_key}"
"""Stands for the routing key of a message in the name of its Kafka topic, NATS subject, Redis stream or SQS queue."""
_USER = re.compile(r"://[^:\s]*:")
_PORT = re.compile(r"[0-9]{1,5}(?!\w)")
_NATS_TOKEN = re.compile(r"(\bnatss?://)[^:@/\s]+@", re.IGNORECASE)
_REGION = re.compile("[a-z]{2}(-[a-z]+)+-[0-9]+")
_HOST = re.compile(r"(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_POSTGRES_HOSTS = re.compile(r"((\[[^][@]+\]|[^][@:,]+)(:[0-9]*)?(,(?=.)|$))*")
_SECRET_PARAMETER = re.compile(  # in a URL, a DSN, a dict
    r"""(?P<name>(?:password|passwd|pwd)["']?\s*[=:]\s*|(?:secret|token|passphrase|key\.pem)["']?\s*=\s*)
        (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|['"][^\n]*|[^&\#\s'"]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)


class ServerKind(StrEnum):
    """The servers that a URL can name."""

    POSTGRES = "postgresql"
    AMQP = "amqp"
    KAFKA = "kafka"
    NATS = "nats"
    REDIS = "redis"
    AWS = "aws"


def server_kind(url: str, *, argument: str = "url") -> ServerKind:
    """Returns the kind of server of `url`. Raises `UrlError`, which names `argument` and contains no secrets of the URL."""
    scheme = _scheme(url, argument)
    if scheme in _POSTGRES_SCHEMES:
        return ServerKind.POSTGRES
    if scheme in _AMQP_SCHEMES:
        return ServerKind.AMQP
    if scheme in _KAFKA_SCHEMES:
        return ServerKind.KAFKA
    if scheme in _NATS_SCHEMES:
        return ServerKind.NATS
    if scheme in _REDIS_SCHEMES:
        return ServerKind.REDIS
    if scheme in _AWS_SCHEMES:
        return ServerKind.AWS
    raise UrlError(
        f"{argument} has the scheme {scheme!r}: write postgresql://host:5432/database, amqp://host:5672/vhost, "
        f"kafka://host:9092, nats://host:4222 (natss:// with TLS), redis://host:6379/0, sqs://region or sns://region/topic"
    )


def postgres_url(url: str, *, argument: str = "db_engine_url") -> str:
    """Returns `url` with the plain scheme `postgresql://`.

    Raises `UrlError` for any other kind of server, and for a URL that the driver would refuse with a part of the password.
    """
    scheme = _scheme(url, argument, such_as="postgresql://")
    if scheme not in _POSTGRES_SCHEMES:
        raise UrlError(f"{argument} must be a postgresql:// URL, not {scheme}://")
    parts = urlsplit(url)
    # As the driver splits it: what follows an unencoded @ in a password is the host.
    hosts = parts.netloc.split("@", 1)[-1]
    try:
        options = parse_qs(parts.query, strict_parsing=bool(parts.query))
        ports = [*re.findall(":([0-9]+)(?=,|$)", hosts), *filter(None, options.get("port", [""])[-1].split(","))]
        is_readable = _POSTGRES_HOSTS.fullmatch(hosts) is not None and all(0 <= int(port) < 65_536 for port in ports)
    except ValueError:
        is_readable = False
    if not is_readable:
        raise UrlError(
            f"{argument} has a host, a port or options that cannot be read: write "
            "postgresql://user:password@host:5432/database?name=value, with special characters percent-encoded"
        )
    return "postgresql" + url[url.index("://") :]


def amqp_url(url: str, *, argument: str = "rmq_connection_url") -> str:
    """Returns `url` unchanged. Raises `UrlError` if it is not the URL of a RabbitMQ server."""
    if server_kind(url, argument=argument) is not ServerKind.AMQP:
        raise UrlError(f"{argument} must be an amqp:// or amqps:// URL, not {_scheme(url, argument)}://")
    return url


def kafka_hosts(url: str, *, argument: str = "broker") -> str:
    """Returns the hosts of a Kafka URL with their ports, separated by commas.

    Raises `UrlError` if it is the URL of another server, if a host is missing, or if it has a path.
    """
    if server_kind(url, argument=argument) is not ServerKind.KAFKA:
        raise UrlError(f"{argument} must be a kafka:// or kafkas:// URL, not {_scheme(url, argument)}://")
    return _listed_hosts(url, 9092, argument, "Kafka does not have: name the topic in ?topic=")


def nats_hosts(url: str, *, argument: str = "broker") -> str:
    """Returns the hosts of a NATS URL with their ports, separated by commas.

    Raises `UrlError` if it is the URL of another server, if a host is missing, or if it has a path.
    """
    if server_kind(url, argument=argument) is not ServerKind.NATS:
        raise UrlError(f"{argument} must be a nats:// or natss:// URL, not {_scheme(url, argument)}://")
    return _listed_hosts(url, 4222, argument, "NATS does not have: name the subject in ?subject=")


def is_host(text: str) -> bool:
    """Whether `text` is a host, with or without a port."""
    host = _HOST.fullmatch(text)
    return host is not None and 0 < int(host[1] or 1) < 65_536


def _listed_hosts(url: str, port: int, argument: str, advice: str) -> str:
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2].lower().split(",")
    if not all(map(is_host, hosts)):
        raise UrlError(f"{argument} has no hosts that can be read: write {parts.scheme}://host:{port},other:{port}/")
    if parts.path not in ("", "/"):
        raise UrlError(f"{argument} has a path, which {advice}")
    return _add_ports(",".join(hosts), port)


def kafka_topic(url: str) -> str:
    """Returns the topic that a Kafka URL names, in which `{routing_key}` stands for that; by default only that."""
    return parse_qs(urlsplit(url).query, keep_blank_values=True).get("topic", [ROUTING_KEY_IN_TOPIC])[-1]


def nats_subject(url: str) -> str:
    """Returns the subject that a NATS URL names, in which `{routing_key}` stands for that; by default only that."""
    subject = nats_parameter(url, "subject")
    return ROUTING_KEY_IN_TOPIC if subject is None else subject


def nats_parameter(url: str, name: str) -> str | None:
    """Returns a parameter of a NATS URL; None if it does not have it."""
    return parse_qs(urlsplit(url).query, keep_blank_values=True).get(name, [None])[-1]


def redis_host(url: str, *, argument: str = "broker") -> tuple[str, int, int]:
    """Returns the host, the port and the number of the database of a Redis URL.

    Raises `UrlError` if it is the URL of another server, or if they cannot be read.
    """
    if server_kind(url, argument=argument) is not ServerKind.REDIS:
        raise UrlError(
            f"{argument} must be a redis://, rediss://, valkey:// or valkeys:// URL, not {_scheme(url, argument)}://"
        )
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    database = parts.path.strip("/") or "0"
    if not is_host(host) or not re.fullmatch("[0-9]{1,9}", database):
        raise UrlError(f"{argument} has no host or no database that can be read: write redis://host:6379/0")
    name, _, port = _add_ports(host, 6379).rpartition(":")
    return name.strip("[]"), int(port), int(database)


def redis_stream(url: str) -> str:
    """Returns the stream that a Redis URL names, in which `{routing_key}` stands for that; by default only that."""
    return parse_qs(urlsplit(url).query, keep_blank_values=True).get("stream", [ROUTING_KEY_IN_TOPIC])[-1]


def aws_names(url: str, *, argument: str = "broker") -> tuple[str, str, str]:
    """Returns the service of an AWS URL, `sqs` or `sns`, its region, and the name of its topic, or of its queues.

    The name of the queues is a template, in which `{routing_key}` stands for that; by default only that. Raises `UrlError` if
    it is the URL of another server, if a part is missing, or if it has a user or a password.
    """
    if server_kind(url, argument=argument) is not ServerKind.AWS:
        raise UrlError(f"{argument} must be an sqs:// or sns:// URL, not {_scheme(url, argument)}://")
    parts = urlsplit(url)
    service, topic = parts.scheme.lower(), parts.path.strip("/")
    if "@" in parts.netloc:
        raise UrlError(f"{argument} has credentials, which AWS takes from its environment, not from the URL")
    if not _REGION.fullmatch(parts.netloc):
        raise UrlError(f"{argument} has no region that can be read: write sqs://eu-west-1 or sns://eu-west-1/topic")
    if service == "sns":
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}(\.fifo)?", topic):
            raise UrlError(f"{argument} has no topic: write sns://{parts.netloc}/topic, with letters, digits, - and _")
        return service, parts.netloc, topic
    if topic:
        raise UrlError(f"{argument} has a path, which SQS does not have: name the queue in ?queue=")
    queue = parse_qs(parts.query, keep_blank_values=True).get("queue", [ROUTING_KEY_IN_TOPIC])[-1]
    return service, parts.netloc, queue


def unreadable_file(url: str, names: Iterable[str]) -> str:
    """Says which option of `url`, one of `names`, names a file that cannot be read now; "" if none does.

    Drivers open these files with OpenSSL, whose errors do not name them.
    """
    given = parse_qs(urlsplit(url).query)
    for name in names:
        for path in given.get(name, ()):
            try:
                Path(path).open("rb").close()
            except OSError as error:
                return f"{name} names {path}, which cannot be read: {error.strerror}"
    return ""


def boolean_option(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Returns an option of a broker's URL, whose options are `given`. Raises `ConfigurationError` for another text."""
    text = given.get(name)
    if text not in (None, "true", "false"):
        raise ConfigurationError(f"broker has an option {name} that is neither true nor false")
    return default if text is None else text == "true"


def number_option(given: Mapping[str, str], name: str, *, default: int, most: int | None = None) -> int:
    """Returns an option of a broker's URL, from 1 to `most` (None: 2**63 - 1). Raises `ConfigurationError` for another text."""
    text = given.get(name)
    if text is None:
        return default
    if not re.fullmatch("[0-9]{1,19}", text) or not 1 <= int(text) <= (most or 2**63 - 1):
        upto = "" if most is None else f" to {most:,}"
        raise ConfigurationError(f"broker has an option {name} that is not a number from 1{upto}")
    return int(text)


def server_address(url: str) -> str:
    """Describes the server and the database or virtual host of `url`, without user, password and options."""
    parts = urlsplit(url)
    kind = server_kind(url)
    # The order of the servers means nothing.
    if kind is ServerKind.KAFKA:
        return f"Kafka at {','.join(sorted(kafka_hosts(url).split(',')))}"
    if kind is ServerKind.NATS:
        return f"NATS at {','.join(sorted(nats_hosts(url).split(',')))}"
    if kind is ServerKind.REDIS:
        host, port, database = redis_host(url)
        return f"Redis at {f'[{host}]' if ':' in host else host}:{port}, database {database}"
    if kind is ServerKind.AWS:
        service, region, topic = aws_names(url)
        return f"SQS in {region}" if service == "sqs" else f"SNS in {region}, topic {topic}"
    hosts = parts.netloc.rpartition("@")[2].lower()
    path = unquote(parts.path.removeprefix("/"))
    if kind is ServerKind.POSTGRES:
        named = parse_qs(parts.query)
        hosts = hosts or ",".join(named.get("host", ["localhost"]))
        return f"PostgreSQL at {_add_ports(hosts, 5432)}, database {path or ','.join(named.get('dbname', ['']))}"
    port = 5671 if parts.scheme.lower() == "amqps" else 5672
    return f"RabbitMQ at {_add_ports(hosts or 'localhost', port)}, virtual host {path or '/'}"


def _add_ports(hosts: str, port: int) -> str:
    """Adds the default port to each host without a port."""
    # A path is a socket and has no port.
    return ",".join(
        host if re.search(r":[0-9]+$", host) or host.startswith("/") else f"{host}:{port}" for host in hosts.split(",")
    )


def redacted(text: str) -> str:
    """Replaces the passwords in `text`, in URLs and in `password=…`, by `***`; the result is safe for logs and errors.

    Removes all of a password, encoded or not, unless it contains both an unencoded space and an unencoded @. To be safe, text
    after a password may be removed, too.
    """
    return _SECRET_PARAMETER.sub(lambda match: f"{match['name']}***", without_passwords(text))


def without_passwords(text: str) -> str:
    """Replaces the passwords of URLs in `text` by `***`, and the token of a NATS URL."""
    text = _NATS_TOKEN.sub(r"\1***@", text)
    parts, rest = [], 0
    for word in re.finditer(r"\S+", text):
        if word.start() < rest or "://" not in word[0]:
            continue
        start, end = _find_password(text, word.start(), word.end())
        if start < end:
            parts.append(f"{text[rest:start]}***")
            rest = end
    return "".join(parts) + text[rest:]


def _find_password(text: str, word_start: int, word_end: int) -> tuple[int, int]:
    """Returns the start and end of the password of the URL in a word; equal positions if there is none."""
    # The password may contain @, so it ends at the last @ of the word. If the word has none, the password may contain spaces,
    # and ends at the last @ of the line; but a number that looks like a port is a port.
    line_end = text.find("\n", word_end)
    for user in _USER.finditer(text, word_start, word_end):
        start = user.end()
        at = text.rfind("@", start, word_end)
        if at < 0 and not _PORT.match(text, start):
            at = text.rfind("@", start, line_end if line_end >= 0 else len(text))
        if at >= 0:
            return start, at
    return word_start, word_start


def _scheme(url: object, argument: str, *, such_as: str = "postgresql:// or amqp://") -> str:
    if not isinstance(url, str):
        raise UrlError(f"{argument} must be a URL as text, not {type(url).__name__}")
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        # The parser's message repeats a part of the URL, which may be the password.
        # From 3.14 on, Python's parser accepts hosts in brackets only if the first one is in brackets, too, and has a port.
        advice = ". Write a host in brackets first, with its port" if "," in url and "[" in url else ""
        raise UrlError(f"{argument} is not a URL: its host cannot be read{advice}") from None
    if "://" not in url or not scheme:
        raise UrlError(f"{argument} is not a URL: it has no scheme such as {such_as}")
    return scheme
