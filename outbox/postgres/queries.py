"""Reads statements from the files in `sql/`, and validates, quotes and derives the names in them."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType

from outbox.errors import IdentifierError

LONGEST_IDENTIFIER = 63
"""PostgreSQL cuts longer names silently (NAMEDATALEN - 1, in bytes)."""
ASLEEP_KEYS = 4
"""Number of asleep locks. Two writers that try the same one at the same instant take each other for a sleeper, which is rare
with several."""

_FORM = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*", re.ASCII)


def quoted(name: str, *, kind: str = "table") -> str:
    """Quotes `name` as an identifier. Raises `IdentifierError` unless it is a plain name of at most 63 bytes."""
    if not isinstance(name, str) or not _FORM.fullmatch(name) or len(name) > LONGEST_IDENTIFIER:
        raise IdentifierError(
            f"{name!r} cannot be a {kind} name: use letters, digits, underscores, at most {LONGEST_IDENTIFIER} of them"
        )
    return f'"{name}"'


def derived(base: str, suffix: str) -> str:
    """Joins `base` and `suffix` to a name of at most 63 bytes, which differs for different bases."""
    name = f"{base}_{suffix}"
    if len(name) <= LONGEST_IDENTIFIER:
        return name
    # Cut names of two bases may be equal; the digest distinguishes them.
    digest = hashlib.sha256(base.encode()).hexdigest()[:8]
    return f"{base[: LONGEST_IDENTIFIER - len(suffix) - 10]}_{digest}_{suffix}"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, with a schema or found through the search path."""

    name: str
    schema: str | None = None

    def __post_init__(self) -> None:
        quoted(self.name)
        if self.schema is not None:
            quoted(self.schema, kind="schema")

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """Parses `table` or `schema.table`. Raises `IdentifierError` for anything else."""
        if not isinstance(text, str):
            raise IdentifierError(f"a table name must be text, not {text!r}")
        schema, dot, name = text.rpartition(".")
        return cls(name=name, schema=schema if dot else None)

    @property
    def sql(self) -> str:
        """The quoted name, qualified if it has a schema."""
        return self.sibling(self.name)

    def sibling(self, name: str) -> str:
        """Returns the quoted name of another object in the same schema."""
        return quoted(name) if self.schema is None else f"{quoted(self.schema, kind='schema')}.{quoted(name)}"

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class BellName:
    """The channel and the advisory locks of one table's doorbell, derived from its schema and name."""

    channel: str
    lock_key: int
    """The in-flight lock. Writers share it until they commit, which shows a sleeper whether any is in flight."""
    asleep_keys: tuple[int, ...]
    """The asleep locks. Sleepers share all of them; a writer tries one."""

    @classmethod
    def of(cls, schema: str, table: str) -> "BellName":
        """Derives the names from the table's. Triggers, relays and workers of all processes get the same."""
        digest = hashlib.sha256(f"{schema}.{table}".encode()).digest()
        # Aligned, so that the keys differ in their last bits only: the trigger sets those from its backend's process id.
        first = int.from_bytes(digest[20:28], "big", signed=True) & -ASLEEP_KEYS
        return cls(
            channel=f"outbox_{digest[:12].hex()}",
            lock_key=int.from_bytes(digest[12:20], "big", signed=True),
            asleep_keys=tuple(first | number for number in range(ASLEEP_KEYS)),
        )


# Statistics and spans are named after the first word of a statement.
_LEADING_COMMENTS = re.compile(r"\A(?:--[^\n]*\n\s*)+")
_FUNCTION_BODY = "body"
"""A block that is the text of a function, which keeps its comments in the database."""
_BLOCK = re.compile(r"^-- name: (?P<name>[a-z_]+)\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


# A process has few tables, but needs the statements about them for each request of the admin API.
@lru_cache(maxsize=512)
def queries(file: str, **names: str) -> Mapping[str, str]:
    """Returns the blocks of `sql/<file>` by name, with each `{placeholder}` replaced by its value in `names`.

    A block begins with a line `-- name: <name>`. The comments after that line are left out, so that a statement begins with
    its verb. Raises `KeyError` for a placeholder without a value.
    """
    return MappingProxyType({name: render(text, **names) for name, text in _blocks(file).items()})


def query(file: str, block: str, **names: str) -> str:
    """Returns one block of `sql/<file>`. Placeholders of other blocks need no values."""
    return render(_blocks(file)[block], **names)


def begin_queries(*, idle: timedelta, locks: timedelta) -> Mapping[str, str]:
    """Returns `begin` of `relay.sql`, and `begin_keeping_plans` for statements that are planned once per connection.

    The server ends a transaction that idles for longer than `idle`, and a wait for a lock after `locks`; zero is no limit.
    """
    begin = query("relay.sql", "begin", idle_timeout=milliseconds(idle), lock_timeout=milliseconds(locks))
    return {"begin": begin, "begin_keeping_plans": f"{begin};\n{query('relay.sql', 'keep_plans')}"}


def milliseconds(time: timedelta) -> str:
    """Returns `time` as a setting of the server, which stores 32 bits."""
    return str(min(round(time / timedelta(milliseconds=1)), 2**31 - 1))


def render(text: str, **names: str) -> str:
    """Replaces the `{placeholders}` of `text`."""
    return _PLACEHOLDER.sub(lambda match: names[match[1]], text)


@cache
def _blocks(file: str) -> dict[str, str]:
    parts = _BLOCK.split(resources.files("outbox.postgres").joinpath("sql", file).read_text())
    texts = zip(parts[1::2], map(str.strip, parts[2::2]), strict=True)
    return {name: text if name == _FUNCTION_BODY else _LEADING_COMMENTS.sub("", text) for name, text in texts}
