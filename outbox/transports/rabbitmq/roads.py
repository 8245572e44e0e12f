"""By which exchange a copy reaches its queue, its dead letters or its delay, given what this user may do."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.engine.lifecycle import Pauses
from outbox.errors import TopologyError
from outbox.transports.rabbitmq.connection import Link
from outbox.transports.rabbitmq.inquiry import Inquiry, inquiry_on
from outbox.transports.rabbitmq.topology import Advise, Topology, dead_letter_exchange, delay_resource, rounded_delay
from outbox.transports.rabbitmq.wire import DEFAULT_EXCHANGE

if TYPE_CHECKING:
    from aiormq.abc import AbstractConnection

    from outbox.transports.rabbitmq.publishing import Pipeline

NO_DELAY = timedelta(0)
ASK_AGAIN = timedelta(seconds=1)
"""After this time it is asked again whether an exchange may be written to by now; twice as long each time."""
LONGEST_REFUSAL = timedelta(seconds=30)
"""It is asked again after this time at the latest."""


class Roads:
    """Finds out once what the broker allows and what there is, and remembers it."""

    def __init__(self, pipeline: "Pipeline", link: Link, topology: Topology, advise: Advise) -> None:
        self._pipeline = pipeline
        self._link = link
        self._topology = topology
        self._advise = advise
        self._rights: dict[str, _Right] = {}
        self._doubted: set[str] = set()
        self._delays: dict[str, dict[timedelta, str]] = {}

    async def explore(self, exchange: str, delays: Sequence[timedelta]) -> None:
        """Finds out everything that a consumer will need, before its first message comes."""
        known = self._delays.setdefault(exchange, {})
        await self._ensure_delays(exchange, [delay for delay in dict.fromkeys(delays) if delay not in known])
        await self.to_queue(exchange)
        await self.to_dead_letters(exchange)

    async def require_dead_letters(self, exchange: str, queue: str, *, ordered: bool) -> None:
        """Raises `TopologyError` unless dead letters of `queue` certainly arrive: published by us, or by the broker."""
        if await self.to_dead_letters(exchange) is None and not await self.rejects_are_safe(exchange, queue, ordered=ordered):
            dlx = dead_letter_exchange(exchange)
            raise TopologyError(
                f"dead letters of queue {queue!r} could be lost: this RabbitMQ user may not write to exchange {dlx!r}, and "
                f"it is not certain that the queue has x-dead-letter-exchange {dlx!r}, x-dead-letter-routing-key {queue!r} and "
                f"x-dead-letter-strategy 'at-least-once'. Grant the permission to write to {dlx!r}; or let Outbox declare the "
                f"queue, and grant the permission to configure it, without which its arguments cannot be checked"
            )

    async def rejects_are_safe(self, exchange: str, queue: str, *, ordered: bool) -> bool:
        """Whether what is rejected from `queue` certainly becomes a dead letter. False where that cannot be found out."""
        async with inquiry_on(self._link) as inquiry:
            return await self._topology.dead_letters_rejects(inquiry, exchange, queue, ordered=ordered)

    async def to_queue(self, exchange: str) -> str:
        """The exchange that takes a message to the queue that its routing key names."""
        if await self._may_publish(DEFAULT_EXCHANGE):
            return DEFAULT_EXCHANGE
        return await self.to_delay(exchange, NO_DELAY)

    async def to_dead_letters(self, exchange: str) -> str | None:
        """The exchange for dead letters; None if this user may not write to it, but only the broker itself."""
        dlx = dead_letter_exchange(exchange)
        return dlx if await self._may_publish(dlx) else None

    async def to_delay(self, exchange: str, delay: timedelta) -> str:
        """The exchange that holds a message back for `delay`.

        A delay that nobody announced is rounded up, since its queue stays. Where it is missing and may not be declared, the
        next longer one that is there serves instead, or else the longest. Raises `TopologyError` if there is none at all.
        """
        known = self._delays.setdefault(exchange, {})
        if delay not in known:
            delay = rounded_delay(delay)
        if delay not in known:
            try:
                await self._ensure_delays(exchange, [delay])
            except TopologyError:
                if not known:
                    raise
                self._make_do(exchange, delay)
        if known[delay] in self._doubted and known[delay] == delay_resource(exchange, delay):
            await self._ensure_delays(exchange, [delay])
        return known[delay]

    async def mend(self, exchange: str, queue: str) -> None:
        """Declares again what a copy needs and is missing by now, and asks anew what is allowed. Raises like `to_delay`."""
        for right in self._rights.values():
            if right.granted:
                right.asked_on = None
        async with inquiry_on(self._link) as inquiry:
            await self._topology.ensure_dead_letters(inquiry, exchange, queue)
            await self.ensure_known_delays(inquiry, exchange)

    async def ensure_known_delays(self, inquiry: Inquiry, exchange: str) -> None:
        """Declares again the delays that were there before and are missing by now. Raises like `to_delay`."""
        for delay, name in list(self._delays.get(exchange, {}).items()):
            if name == delay_resource(exchange, delay):
                await self._topology.ensure_delay(inquiry, exchange, delay)
                self._doubted.discard(name)

    def doubt(self) -> None:
        """An exchange was missing: each delay is looked for again before it is next used."""
        self._doubted |= {name for delays in self._delays.values() for name in delays.values()}

    async def _ensure_delays(self, exchange: str, delays: Sequence[timedelta]) -> None:
        if not delays:
            return
        async with inquiry_on(self._link) as inquiry:
            for delay in delays:
                await self._topology.ensure_delay(inquiry, exchange, delay)
                self._delays[exchange][delay] = delay_resource(exchange, delay)
                self._doubted.discard(delay_resource(exchange, delay))

    def _make_do(self, exchange: str, delay: timedelta) -> None:
        known = self._delays[exchange]
        instead = min((other for other in known if other >= delay), default=max(known))
        known[delay] = known[instead]
        self._advise(
            f"exchange {delay_resource(exchange, delay)!r} is missing and may not be declared by this RabbitMQ user: "
            f"retries after {delay} go by {known[instead]!r} instead; provision it"
        )

    async def _may_publish(self, exchange: str) -> bool:
        """Asked once for each connection. What was refused is asked for again after a growing time: each refusal costs a
        channel, and a line in the broker's log."""
        now = asyncio.get_running_loop().time()
        right = self._rights.setdefault(exchange, _Right())
        if (
            right.asked_on is None
            or right.asked_on is not self._link.current
            or (not right.granted and now >= right.ask_again_at)
        ):
            right.granted = await self._pipeline.may_publish(exchange)
            right.asked_on = self._link.current
            if right.granted:
                right.pauses.reset()
            else:
                right.ask_again_at = now + right.pauses.next().total_seconds()
        return right.granted


@dataclass(slots=True)
class _Right:
    """Whether an exchange may be written to, on which connection that was asked, and when a refusal is no longer believed."""

    granted: bool = False
    asked_on: "AbstractConnection | None" = None
    ask_again_at: float = 0.0
    pauses: Pauses = field(default_factory=lambda: Pauses(first=ASK_AGAIN, longest=LONGEST_REFUSAL))
