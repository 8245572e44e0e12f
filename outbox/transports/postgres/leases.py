"""Lease tokens: fence a delivery, and name the process that holds it and since when."""

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
    """The contents of a token: when it was made, by the clock of its process, and a tag of that process."""

    since: datetime
    tag: int

    @classmethod
    def parse(cls, token: UUID) -> "Lease | None":
        """Reads `token`; None for a random token of an earlier release."""
        if token.version != _VERSION:
            return None
        milliseconds = token.int >> 80
        return cls(datetime.fromtimestamp(milliseconds / 1_000, UTC), token.int >> _RANDOM_BITS & (1 << _TAG_BITS) - 1)

    def was_made_by(self, host: str, process_id: int) -> bool:
        """Whether that process made the token. Among a hundred processes, the chance that two share a tag is one in 200,000."""
        return self.tag == _process_tag(host, process_id)


def lease_token(now: datetime) -> UUID:
    """Makes a token that no other claim has: an RFC 9562 version 8 UUID of the time, this process, and 44 random bits."""
    # Time comes first, as in version 7. The tag is in the half whose contents RFC 9562 leaves to the implementation.
    value = int(now.timestamp() * 1_000) & (1 << 48) - 1
    value = value << 4 | _VERSION
    value = value << 12 | secrets.randbits(12)
    value = value << 2 | _VARIANT
    value = value << _TAG_BITS | _process_tag(platform.node(), os.getpid())
    return UUID(int=value << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS))


@lru_cache(maxsize=1_000)
def _process_tag(host: str, process_id: int) -> int:
    digest = hashlib.sha256(f"{host}:{process_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 2
