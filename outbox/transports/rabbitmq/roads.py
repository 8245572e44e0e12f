"""By which exchange a copy reaches its queue, its dead letters or its delay, given what this user may do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.errors import TopologyError
from outbox.transports.rabbitmq.connection import Link
from outbox.transports.rabbitmq.inquiry import inquiry_on
from outbox.transports.rabbitmq.topology import Advise, Topology, dead_letter_exchange, delay_resource, rounded_delay
from outbox.transports.rabbitmq.wire import DEFAULT_EXCHANGE

if TYPE_CHECKING:
    from outbox.transports.rabbitmq.publishing import Pipeline

NO_DELAY = timedelta(0)


class Roads:
    """Finds out once what the broker allows and what there is, and remembers it."""

    def __init__(self, pipeline: "Pipeline", link: Link, topology: Topology, advise: Advise) -> None:
        self._pipeline = pipeline
        self._link = link
        self._topology = topology
        self._advise = advise
        self._allowed: dict[str, bool] = {}
        self._delays: dict[str, dict[timedelta, str]] = {}

    async def explore(self, exchange: str, delays: Sequence[timedelta]) -> None:
        """Finds out everything that a consumer will need, before its first message comes."""
        known = self._delays.setdefault(exchange, {})
        await self._ensure_delays(exchange, [delay for delay in dict.fromkeys(delays) if delay not in known])
        await self.to_queue(exchange)
        await self.to_dead_letters(exchange)

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
        return known[delay]

    async def mend(self, exchange: str, queue: str) -> None:
        """Declares again what a copy needs and is missing by now, and asks anew what is allowed. Raises like `to_delay`."""
        self._allowed.clear()
        async with inquiry_on(self._link) as inquiry:
            await self._topology.ensure_dead_letters(inquiry, exchange, queue)
            for delay, name in list(self._delays.get(exchange, {}).items()):
                if name == delay_resource(exchange, delay):
                    await self._topology.ensure_delay(inquiry, exchange, delay)

    async def _ensure_delays(self, exchange: str, delays: Sequence[timedelta]) -> None:
        if not delays:
            return
        async with inquiry_on(self._link) as inquiry:
            for delay in delays:
                await self._topology.ensure_delay(inquiry, exchange, delay)
                self._delays[exchange][delay] = delay_resource(exchange, delay)

    def _make_do(self, exchange: str, delay: timedelta) -> None:
        known = self._delays[exchange]
        instead = min((other for other in known if other >= delay), default=max(known))
        known[delay] = known[instead]
        self._advise(
            f"exchange {delay_resource(exchange, delay)!r} is missing and may not be declared by this RabbitMQ user: "
            f"retries after {delay} go by {known[instead]!r} instead; provision it"
        )

    async def _may_publish(self, exchange: str) -> bool:
        if exchange not in self._allowed:
            self._allowed[exchange] = await self._pipeline.may_publish(exchange)
        return self._allowed[exchange]
