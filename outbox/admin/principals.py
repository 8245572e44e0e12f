"""Principals, their roles, and the tokens that they log in with."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum

from outbox.errors import ConfigurationError


class Role(StrEnum):
    """A viewer reads; an operator also repairs, pauses and reveals masked values; an admin also deletes for good."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether this role may do what `other` may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking: `name` is what the audit keeps of them. The role may be given by its name.

    Raises `ConfigurationError` for a role that there is not.
    """

    name: str
    role: Role

    def __post_init__(self) -> None:
        if self.role not in tuple(Role):
            raise ConfigurationError(f"the role of a principal is one of {', '.join(Role)}, not {self.role!r}")
        object.__setattr__(self, "role", Role(self.role))


_PREFIX = "outbox_"
_SECRET = re.compile(_PREFIX + r"[A-Za-z0-9_-]{43}", re.ASCII)
LONGEST_NAME = 100
_NAME = re.compile(rf"[\w.@+-]{{1,{LONGEST_NAME}}}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FORM = "name:role:hash, or name:role:hash:last-day, as `outbox token` prints it"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A principal who logs in with a token, of which only the hash is known: it may stand in a configuration.

    The token is good until the end of `last_day`, in UTC; None: for as long as the entry stands there.
    """

    name: str
    role: Role
    token_hash: bytes
    last_day: date | None = None

    def __str__(self) -> str:
        until = "" if self.last_day is None else f":{self.last_day}"
        return f"{self.name}:{self.role}:{self.token_hash.hex()}{until}"

    @property
    def expired(self) -> bool:
        """Whether its last day is over."""
        return self.last_day is not None and datetime.now(UTC).date() > self.last_day


@dataclass(frozen=True, slots=True)
class Tokens:
    """Everybody who may come in with a token."""

    entries: tuple[TokenEntry, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Tokens":
        """The entries that `texts` are. Raises `ConfigurationError` for what is none, and for two that contradict each other.

        A name may stand there twice, with the same role: so a token is replaced without a moment in which none is good.
        """
        if isinstance(texts, str):
            raise ConfigurationError(f"tokens are a list, of which each is {_FORM}")
        entries: list[TokenEntry] = []
        for place, text in enumerate(texts, start=1):
            # The text is not repeated in errors, because it may be a token itself.
            parts = text.strip().split(":")
            if len(parts) not in (3, 4):
                raise ConfigurationError(f"token {place} is not {_FORM}")
            name, role, token_hash, *last_day = parts
            if role not in tuple(Role):
                raise ConfigurationError(f"token {place}: the role is one of {', '.join(Role)}")
            if not _HASH.fullmatch(token_hash):
                raise ConfigurationError(f"token {place}: the hash is 64 digits, 0-9 and a-f; {_FORM}")
            try:
                until = date.fromisoformat(last_day[0]) if last_day else None
            except ValueError:
                raise ConfigurationError(f"token {place}: the last day is written as 2026-12-31; {_FORM}") from None
            known = _checked_name(name, f"token {place}: ")
            entries.append(TokenEntry(known, Role(role), bytes.fromhex(token_hash), until))
        roles: dict[str, Role] = {}
        for entry in entries:
            if roles.setdefault(entry.name, entry.role) != entry.role:
                raise ConfigurationError(f"{entry.name} has tokens of two roles: give each role a name of its own")
        if len({entry.token_hash for entry in entries}) < len(entries):
            raise ConfigurationError("two entries have the same hash: each takes a token of its own")
        return cls(tuple(entries))

    def find(self, token: str) -> TokenEntry | None:
        """Whose token this is, if anybody's. How long it takes says nothing about the entries."""
        return self._with_hash(hash_of(token), is_one=_SECRET.fullmatch(token) is not None)

    def with_hash(self, token_hash: bytes) -> TokenEntry | None:
        """The entry whose token has that hash."""
        return self._with_hash(token_hash, is_one=True)

    def _with_hash(self, token_hash: bytes, *, is_one: bool) -> TokenEntry | None:
        found = None
        for entry in self.entries:
            # Every entry is compared, also after a match, so that the time says nothing about which one it is.
            if hmac.compare_digest(entry.token_hash, token_hash) and is_one:
                found = entry
        return found


def new_token(name: str, role: Role, *, last_day: date | None = None) -> tuple[str, TokenEntry]:
    """A new token, which is kept nowhere, and the entry for it. Raises `ConfigurationError` for an impossible name."""
    token = token_of(secrets.token_bytes(32))
    return token, replace(entry_for(token, name, role), last_day=last_day)


def token_of(secret: bytes) -> str:
    """32 bytes as a token. Its form makes it easy to find where it should not be, and hard to choose one by hand."""
    return _PREFIX + text_of(secret)


def entry_for(token: str, name: str, role: Role) -> TokenEntry:
    """What a configuration has to say for that token to be good."""
    return TokenEntry(_checked_name(name), role, hash_of(token))


def hash_of(secret: str) -> bytes:
    """What is kept of a secret. It is random, so that it cannot be guessed from this, however fast one hashes."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def text_of(secret: bytes) -> str:
    """32 bytes as 43 characters that fit into addresses, headers and cookies."""
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")


def _checked_name(name: str, where: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}a name is up to 100 letters, digits and .@+-_")
    return name
