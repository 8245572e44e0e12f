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
    """Role of a principal. Viewers read; operators also repair, pause and reveal masked values; admins also delete for good."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether this role has all permissions of `other`."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated client: the name that the audit records, and a role, which may be given by its name.

    Raises `ConfigurationError` for an unknown role.
    """

    name: str
    role: Role

    def __post_init__(self) -> None:
        if self.role not in tuple(Role):
            raise ConfigurationError(f"the role of a principal must be one of {', '.join(Role)}, not {self.role!r}")
        object.__setattr__(self, "role", Role(self.role))


_PREFIX = "outbox_"
_SECRET = re.compile(_PREFIX + r"[A-Za-z0-9_-]{43}", re.ASCII)
LONGEST_NAME = 100
_NAME = re.compile(rf"[\w.@+-]{{1,{LONGEST_NAME}}}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FORM = "name:role:hash, or name:role:hash:last-day, as `outbox token` prints it"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A principal who logs in with a token. The entry contains the token's hash only, so a configuration may contain it.

    The token is valid until the end of `last_day`, in UTC. None: until the entry is removed.
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
        """Whether the last day is over."""
        return self.last_day is not None and datetime.now(UTC).date() > self.last_day


@dataclass(frozen=True, slots=True)
class Tokens:
    """The configured token entries."""

    entries: tuple[TokenEntry, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Tokens":
        """Parses entries. Raises `ConfigurationError` for a malformed entry, and for two that contradict each other.

        Two entries may share a name and a role, so a token can be replaced while the previous one is still valid.
        """
        if isinstance(texts, str):
            raise ConfigurationError(f"tokens must be a list; each item is {_FORM}")
        entries: list[TokenEntry] = []
        for number, text in enumerate(texts, start=1):
            # Errors do not quote the text, because an operator may have pasted the token itself.
            parts = text.strip().split(":")
            if len(parts) not in (3, 4):
                raise ConfigurationError(f"token {number} must be {_FORM}")
            name, role, token_hash, *last_day = parts
            if role not in tuple(Role):
                raise ConfigurationError(f"token {number}: the role must be one of {', '.join(Role)}")
            if not _HASH.fullmatch(token_hash):
                raise ConfigurationError(f"token {number}: the hash must be 64 digits, 0-9 and a-f; {_FORM}")
            try:
                until = date.fromisoformat(last_day[0]) if last_day else None
            except ValueError:
                raise ConfigurationError(f"token {number}: the last day must be a date such as 2026-12-31; {_FORM}") from None
            valid_name = _require_name(name, f"token {number}: ")
            entries.append(TokenEntry(valid_name, Role(role), bytes.fromhex(token_hash), until))
        roles: dict[str, Role] = {}
        for entry in entries:
            if roles.setdefault(entry.name, entry.role) != entry.role:
                raise ConfigurationError(f"{entry.name} has tokens with two roles: use a separate name for each role")
        if len({entry.token_hash for entry in entries}) < len(entries):
            raise ConfigurationError("two entries have the same hash: create a separate token for each")
        return cls(tuple(entries))

    def find(self, token: str) -> TokenEntry | None:
        """Returns the entry of `token`, or None. Its duration reveals nothing about the entries."""
        return self._with_hash(hash_of(token), is_well_formed=_SECRET.fullmatch(token) is not None)

    def with_hash(self, token_hash: bytes) -> TokenEntry | None:
        """Returns the entry whose token has that hash, or None."""
        return self._with_hash(token_hash, is_well_formed=True)

    def _with_hash(self, token_hash: bytes, *, is_well_formed: bool) -> TokenEntry | None:
        found = None
        for entry in self.entries:
            # Compares every entry, even after a match, so that the duration does not reveal which one matches.
            if hmac.compare_digest(entry.token_hash, token_hash) and is_well_formed:
                found = entry
        return found


def new_token(name: str, role: Role, *, last_day: date | None = None) -> tuple[str, TokenEntry]:
    """Creates a token, which is stored nowhere, and its entry. Raises `ConfigurationError` for an invalid name."""
    token = token_of(secrets.token_bytes(32))
    return token, replace(entry_for(token, name, role), last_day=last_day)


def token_of(secret: bytes) -> str:
    """Formats 32 bytes as a token."""
    # The prefix lets secret scanners find leaked tokens; the fixed length rules out tokens chosen by hand.
    return _PREFIX + text_of(secret)


def entry_for(token: str, name: str, role: Role) -> TokenEntry:
    """Returns the configuration entry of a token."""
    return TokenEntry(_require_name(name), role, hash_of(token))


def hash_of(secret: str) -> bytes:
    """Hashes a secret for storage."""
    # A plain hash is enough, because secrets are 32 random bytes: no hashing speed makes guessing feasible.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def text_of(secret: bytes) -> str:
    """Encodes 32 bytes as 43 characters that are safe in URLs, headers and cookies."""
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")


def _require_name(name: str, where: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}a name must be up to 100 letters, digits and .@+-_")
    return name
