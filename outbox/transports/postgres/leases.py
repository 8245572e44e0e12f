"""Lease tokens, which fence a delivery, and say since when which process has it."""

import hashlib
import os
import platform
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

_VERSION, _VARIANT = 8, 0b10
_TAG_BITS, _RANDOM_BITS = 30, 32


@dataclass(frozen=True, slots=True)
class Lease:
    """What a token says: when it was made, by the clock of its process, and by which one."""

    since: datetime
    tag: int

    @classmethod
    def of(cls, token: UUID) -> "Lease | None":
        """What `token` says; None: it was made by an earlier release, which used random ones."""
        if token.version != _VERSION:
            return None
        milliseconds = token.int >> 80
        return cls(datetime.fromtimestamp(milliseconds / 1_000, UTC), token.int >> _RANDOM_BITS & (1 << _TAG_BITS) - 1)

    def is_of(self, host: str, process_id: int) -> bool:
        """Whether that process made it. Of a hundred processes, two have the same tag with a chance of one in 200,000."""
        return self.tag == _tag(host, process_id)


def lease_token(now: datetime) -> UUID:
    """A token that no other claim has: RFC 9562 version 8, of the time, this process, and 44 random bits."""
    # Time first, as in version 7; the tag is in the half that RFC 9562 leaves to the maker of the UUID.
    value = int(now.timestamp() * 1_000) & (1 << 48) - 1
    value = value << 4 | _VERSION
    value = value << 12 | secrets.randbits(12)
    value = value << 2 | _VARIANT
    value = value << _TAG_BITS | _tag(platform.node(), os.getpid())
    return UUID(int=value << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS))


@lru_cache(maxsize=1_000)
def _tag(host: str, process_id: int) -> int:
    digest = hashlib.sha256(f"{host}:{process_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 2
