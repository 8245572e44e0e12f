"""What workers of these tests do with a message, and the journal that they write, which outlives any kill."""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import asyncpg

from outbox import Consumer, Reject

Order = dict[str, int]


class Simulated(Exception):
    """What handlers fail with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A consumer's queue, and what its handler does with a message that carries a number.

    It takes `seconds`, kills its process on the numbers `fatal`, and fails the first `failures` attempts, or the first one at a
    share `failing` of the numbers. What it `does` besides: with "effect" it writes a row into `effects` and publishes
    `effect.made` with the row's number, in the transaction that it is given; with "deposit" it has an inbox, adds to `account`
    and publishes `deposit.made`; with "count" it has one, and writes a row into `children`.
    """

    queue: str
    binding_key: str = "order.*"
    seconds: float = 0.0
    fatal: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    failures: int = 0
    failing: float = 0.0
    retry_delays: tuple[str, ...] = ("0", "1s", "1s")
    max_deliveries: int = 10
    number_key: str = "number"
    does: Literal["nothing", "effect", "deposit", "count"] = "nothing"
    ordered: bool = False

    def consumer(self, write: Callable[[bytes], object]) -> Consumer:
        """The consumer, which writes a line when a handler begins and one when it ends."""
        handling = _Handling(self, write)
        callbacks: dict[str, Callable[..., Any]] = {
            "nothing": handling.handle,
            "effect": handling.make_effect,
            "deposit": handling.deposit,
            "count": handling.count,
        }
        return Consumer(
            self.binding_key,
            callbacks[self.does],
            queue=self.queue,
            retry_delays=self.retry_delays,
            max_deliveries=self.max_deliveries,
            inbox=self.does in ("deposit", "count"),
            ordered=self.ordered,
        )


class _Handling:
    def __init__(self, handler: Handler, write: Callable[[bytes], object]) -> None:
        self._handler = handler
        self._write = write

    async def handle(self, order: Order, attempt_count: int) -> None:
        handler, number = self._handler, order[self._handler.number_key]
        self._note("began", number, attempt_count)
        if handler.seconds:
            await asyncio.sleep(handler.seconds)
        if number in handler.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if number in handler.rejected:
            raise Reject("forbidden")
        if attempt_count <= handler.failures or (attempt_count == 1 and random.Random(number).random() < handler.failing):
            raise Simulated(f"attempt {attempt_count}")
        self._note("ended", number, attempt_count)

    async def make_effect(self, order: Order, attempt_count: int, connection: asyncpg.Connection, publisher: Any) -> None:
        effect = await connection.fetchval("insert into effects (of) values ($1) returning number", order["number"])
        await publisher.publish("effect.made", {"number": effect})
        await self.handle(order, attempt_count)

    async def deposit(self, order: Order, attempt_count: int, connection: asyncpg.Connection, publisher: Any) -> None:
        await connection.execute("update account set balance = balance + $1", order["number"])
        await publisher.publish("deposit.made", {"number": order["number"]})
        await self.handle(order, attempt_count)

    async def count(self, order: Order, attempt_count: int, connection: asyncpg.Connection) -> None:
        await connection.execute("insert into children (number) values ($1)", order["number"])
        await self.handle(order, attempt_count)

    def _note(self, what: str, number: int, attempt: int) -> None:
        self._write(f"{what} {self._handler.queue} {number} {attempt} {os.getpid()}\n".encode())
