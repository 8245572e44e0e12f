"""Limits for whoever guesses tokens: how often wrong ones are answered, and when they are only refused.

A token is 256 random bits, which nobody guesses. What is limited is the work, the noise and the rows that trying makes, so that
a right token is let in whatever others have tried: nobody can lock an operator out.
"""

import asyncio
import ipaddress
import logging
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.admin.problems import Code, Problem
from outbox.admin.store.sessions import count_failure
from outbox.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    from outbox.admin.admin import Admin

logger = logging.getLogger("outbox")

EVERYBODY = "everybody"
"""The bucket of all addresses together."""
MOST_REMEMBERED = 1_000
"""Addresses that a process remembers to refuse without asking the database."""


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """How many wrong tokens are answered within `window`; those beyond are refused until it ends."""

    window: timedelta = timedelta(minutes=5)
    per_address: int = 10
    for_everybody: int = 200


class FailedLogins:
    """Counts them, for one admin. Each process learns from the database who is to be refused, and then does so by itself."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin
        self._limits = LoginLimits()
        self._refused: dict[str, float] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    async def count(self, address: str) -> None:
        """Takes note of a wrong token from `address`. Raises `too_many_logins` if there were more than are answered.

        While the database is away, nothing is counted.
        """
        bucket = _bucket(address)
        self._refuse_known(EVERYBODY, bucket)
        try:
            await self._count(EVERYBODY, self._limits.for_everybody)
            await self._count(bucket, self._limits.per_address)
        except DatabaseUnavailableError as error:
            logger.warning("a failed login from %s was not counted: %s", address, error)

    async def _count(self, bucket: str, limit: int) -> None:
        async with self._admin.changing("counting failed logins") as connection:
            failures = await count_failure(connection, self._admin.table, bucket, self._limits.window)
        if failures.count > limit:
            self._remember(bucket, _now() + failures.rest.total_seconds())
            logger.warning("more than %d failed logins from %s: refusing more for %s", limit, bucket, failures.rest)
            self._refuse_known(bucket)

    def _remember(self, bucket: str, until: float) -> None:
        if len(self._refused) >= MOST_REMEMBERED:
            self._refused = {known: end for known, end in self._refused.items() if end > _now()}
        if len(self._refused) < MOST_REMEMBERED:
            self._refused[bucket] = until

    def _refuse_known(self, *buckets: str) -> None:
        rest = max(self._refused.get(bucket, 0.0) for bucket in buckets) - _now()
        if rest > 0:
            seconds = math.ceil(rest)
            raise Problem(
                Code.TOO_MANY_LOGINS,
                f"try again in {seconds} seconds, or with a token that is right",
                headers={"retry-after": str(seconds)},
            )


def _bucket(address: str) -> str:
    """Whom `address` stands for; somebody with IPv6 has a whole network of them."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    if known.version == 6 and known.ipv4_mapped is None:
        return str(ipaddress.ip_network(f"{known}/64", strict=False))
    return str(known)


def _now() -> float:
    return asyncio.get_running_loop().time()
