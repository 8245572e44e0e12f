"""The environment variables that the service and the commands read, and what to say about others that look like them."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from outbox.errors import ConfigurationError

logger = logging.getLogger("outbox")

PREFIX = "OUTBOX_"

KNOWN = frozenset(
    PREFIX + name
    for name in (
        "ADMIN_BODY_LIMIT",
        "ADMIN_ERROR_TEXT",
        "ADMIN_READS_PER_PRINCIPAL",
        "ADMIN_READ_ONLY",
        "ADMIN_SESSION_LIFETIME",
        "ADMIN_STREAMS",
        "ADMIN_STREAMS_PER_PRINCIPAL",
        "ADMIN_TOKENS",
        "ARCHIVE_DISCOVER_EVERY",
        "ARCHIVE_QUEUES",
        "AUDIT_RETENTION",
        "BATCH_SIZE",
        "BROKER_URL",
        "CLEAN_UP_AFTER",
        "CONSUMERS",
        "DATABASE_POOL_SIZE",
        "DATABASE_URL",
        "DATA_DIR",
        "DEAD_LETTER_RETENTION",
        "DEVELOPMENT",
        "DOCS",
        "EXAMPLE",
        "EXCHANGE_NAME",
        "EXPIRATION",
        "GRACE_PERIOD",
        "HEALTH_DEAD_LETTER_WINDOW",
        "HEALTH_LATE_AFTER",
        "HEALTH_LOST_FOR",
        "HEALTH_OVERDUE_AFTER",
        "HEALTH_QUEUE_DEPTH",
        "HEARTBEAT_INTERVAL",
        "HISTORY",
        "HISTORY_RETENTION",
        "HTTP_HOST",
        "HTTP_PORT",
        "INBOX_RETENTION",
        "LANES",
        "LISTEN_URL",
        "LOG_FORMAT",
        "LOG_LEVEL",
        "MANAGEMENT_URL",
        "MASK_KEYS",
        "MASK_PATHS",
        "MAX_ATTEMPTS",
        "MAX_BATCH_BYTES",
        "MAX_BODY_BYTES",
        "METRICS",
        "METRICS_TOKEN",
        "MIGRATE",
        "MONITORING_HOST",
        "MONITORING_PORT",
        "NAME",
        "NOTIFICATION_TIMEOUT",
        "ON_UNROUTABLE",
        "ORDERING_POLICY",
        "POLL_INTERVAL",
        "PREFETCH_COUNT",
        "PUBLISH_TIMEOUT",
        "REPORTING",
        "RETRY_DELAYS",
        "RUN",
        "TABLE_NAME",
    )
)
"""Every variable of ours: the processes of one installation share an environment, and each knows the others' settings."""
OF_COMMANDS = frozenset({PREFIX + "TOKEN", PREFIX + "URL"})
"""What only the commands read that ask a running service: where it is, and as whom."""

SECRETS = frozenset(
    PREFIX + name
    for name in ("ADMIN_TOKENS", "BROKER_URL", "DATABASE_URL", "LISTEN_URL", "MANAGEMENT_URL", "METRICS_TOKEN", "TOKEN")
)
"""What may stand in a file instead, which the variable of the same name with `_FILE` at its end names."""

_FILE = "_FILE"
_FILES = frozenset(name + _FILE for name in SECRETS)
_SIMILAR = 0.8
_TESTS = PREFIX + "TEST_"
# What Kubernetes and container links inject for a service that is called `outbox` or `outbox-…`.
_INJECTED = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)")
_INJECTED_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def check_environment(environment: Mapping[str, str] | None = None) -> None:
    """Raises `ConfigurationError` for a variable that is almost one of ours; warns of another that begins with `OUTBOX_`.

    Orchestrators inject variables of their own, so what resembles nothing cannot be refused.
    """
    strangers = sorted(_strangers(os.environ if environment is None else environment))
    misspelt = {name: near for name in strangers if (near := _near_miss(name.upper()))}
    if misspelt:
        raise ConfigurationError("; ".join(f"{name} is not a setting, did you mean {near}?" for name, near in misspelt.items()))
    for name in strangers:
        logger.warning("%s is set, but is not a setting: it has no effect", name)


def secret(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The value of the variable `name`, one of `SECRETS`, or what is in the file that `<name>_FILE` names; None for neither.

    A line break at the end of the file does not count. Raises `ConfigurationError` for both, and for a file that is empty or
    cannot be read.
    """
    variables = os.environ if environment is None else environment
    value, file = variables.get(name), variables.get(name + _FILE)
    if not file:
        return value or None
    if value:
        raise ConfigurationError(f"{name} and {name}{_FILE} are both set: unset one of them")
    try:
        content = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
        raise ConfigurationError(f"{name}{_FILE}: {file} cannot be read: {reason}") from error
    if not content:
        raise ConfigurationError(f"{name}{_FILE}: {file} is empty")
    return content


def _strangers(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        upper = name.upper()
        if not upper.startswith(PREFIX) or upper.startswith(_TESTS) or upper in KNOWN | OF_COMMANDS | _FILES:
            continue
        if not _INJECTED.fullmatch(upper) and not _INJECTED_ADDRESS.match(value):
            yield name


def _near_miss(name: str) -> str | None:
    """The setting that was meant: one with another letter or two, or one of whose words some are missing."""
    short = name.removeprefix(PREFIX)
    names = sorted(known.removeprefix(PREFIX) for known in (_FILES if name.endswith(_FILE) else KNOWN))
    similar = get_close_matches(short, names, n=1, cutoff=_SIMILAR)
    shortened = [known for known in names if known.startswith(f"{short}_") or known.endswith(f"_{short}")]
    meant = similar or (shortened if len(shortened) == 1 else [])
    return PREFIX + meant[0] if meant else None
