"""Exchanges and queues: checked first, declared only where they are missing."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from aiormq.exceptions import AMQPChannelError, ChannelAccessRefused, ChannelNotFoundEntity, ChannelPreconditionFailed

from outbox.core.duration import format_duration
from outbox.engine.lifecycle import Pauses
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import Subscription
from outbox.transports.rabbitmq.connection import Link, UnresponsiveError, broker_version, translate_connection_errors
from outbox.transports.rabbitmq.frame_tap import abandon
from outbox.transports.rabbitmq.message_format import DEFAULT_EXCHANGE

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

    from outbox.transports.rabbitmq.publisher import Pipeline


T = TypeVar("T")

NotThere = ChannelNotFoundEntity
NotAllowed = ChannelAccessRefused
Different = ChannelPreconditionFailed

_TIMEOUT = timedelta(seconds=10)
"""For one question. Declaring a quorum queue takes a cluster a while."""


class Inquiry:
    """Asks on one channel after another: each refusal costs the channel that it was asked on."""

    def __init__(self, connection: "AbstractConnection") -> None:
        self.connection = connection
        self._channel: AbstractChannel | None = None

    async def ask(self, question: Callable[["AbstractChannel"], Awaitable[T]]) -> T:
        """The broker's answer. Raises the refusal (`AMQPChannelError`), or `BrokerUnavailableError` without an answer."""
        try:
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                with translate_connection_errors():
                    if self._channel is None or self._channel.is_closed:
                        self._channel = await self.connection.channel(publisher_confirms=False)
                    return await question(self._channel)
        except TimeoutError:
            self._drop_channel()
            raise UnresponsiveError("the broker does not answer") from None
        except BaseException:
            self._drop_channel()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._drop_channel()

    def _drop_channel(self) -> None:
        if self._channel is not None:
            abandon(self._channel)
            self._channel = None


@asynccontextmanager
async def inquiry_on(link: Link) -> AsyncIterator[Inquiry]:
    """An inquiry on the connection of `link`, which is discarded if it does not answer."""
    connection = await link.open()
    try:
        async with Inquiry(connection) as inquiry:
            yield inquiry
    except UnresponsiveError:
        link.discard(connection)
        raise


async def depth_of(link: Link, queue: str) -> int | None:
    """How many messages wait in a queue; None if it is not there. Raises `BrokerUnavailableError`."""
    async with inquiry_on(link) as inquiry:
        try:
            declared = await inquiry.ask(lambda channel: channel.queue_declare(queue, passive=True))
        except NotThere:
            return None
        except AMQPChannelError as error:
            raise BrokerUnavailableError(f"queue {queue!r} cannot be looked at: {error}") from None
    return declared.message_count or 0


Advise = Callable[[str], None]

_QUORUM: Mapping[str, Any] = {"x-queue-type": "quorum"}
_SAFE: Mapping[str, Any] = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
_NO_POLICY = ("x-queue-type", "x-single-active-consumer")
_ONE_AT_A_TIME: Mapping[str, Any] = {"x-single-active-consumer": True}
_NO_DELIVERY_LIMIT_SINCE = (4, 0)
_LONGEST_DELAY = timedelta(milliseconds=2**32 - 2)
_BIND_AGAIN = timedelta(minutes=1)
_LONGEST_REFUSAL = timedelta(hours=1)


def dead_letter_exchange(exchange: str) -> str:
    """Where dead letters of an exchange's consumers go."""
    return f"{exchange}.dlx"


def exchange_of_dead_letters(dead_letter_exchange: str) -> str:
    """The exchange whose consumers' dead letters went there."""
    return dead_letter_exchange.removesuffix(".dlx")


def dead_letter_queue(queue: str) -> str:
    """Where the dead letters of a consumer's queue stay."""
    return f"{queue}.dlq"


def delay_resource(exchange: str, delay: timedelta) -> str:
    """The exchange, and the queue of the same name, that hold a retry back for `delay`."""
    return f"{exchange}.delay_{format_duration(min(delay, _LONGEST_DELAY))}"


def rounded_delay(delay: timedelta) -> timedelta:
    """`delay` rounded up to two significant digits, as far as the broker can count.

    For delays that no consumer announced: each distinct one is a queue that stays, and handlers may compute them.
    """
    milliseconds = -(-min(delay, _LONGEST_DELAY) // timedelta(milliseconds=1))
    unit = 10 ** max(0, len(str(milliseconds)) - 2)
    return timedelta(milliseconds=-(-milliseconds // unit) * unit)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange of ours, durable."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"exchange {self.name!r}"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of ours, durable."""

    name: str
    arguments: Mapping[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"queue {self.name!r}"


Resource = Exchange | Queue


@dataclass(slots=True)
class _RefusedBinding:
    """A binding that this user may not make, and when that is tried again."""

    try_again_at: float = 0.0
    pauses: Pauses = field(default_factory=lambda: Pauses(first=_BIND_AGAIN, longest=_LONGEST_REFUSAL))


class Topology:
    """What was ensured so far, by kind and name, so that it is compared and advised about once, and missed when it is gone.

    `declared_again` is called for each resource that had been deleted, each time.
    """

    def __init__(self, advise: Advise, *, declared_again: Advise) -> None:
        self._advise = advise
        self._declared_again = declared_again
        self._compared: set[str] = set()
        self._refused_bindings: dict[tuple[str, str, str], _RefusedBinding] = {}

    async def ensure_exchange(self, inquiry: Inquiry, exchange: str) -> bool:
        """The topic exchange that messages are sent to; whether it was there already."""
        return await self._ensure(inquiry, Exchange(exchange, "topic"))

    async def ensure_consumer(self, inquiry: Inquiry, subscription: Subscription) -> None:
        """Everything between the exchange and the dead letters of a consumer's queue."""
        exchange, queue = subscription.exchange_name, subscription.queue
        found = await self.ensure_exchange(inquiry, exchange)
        await self.ensure_dead_letters(inquiry, exchange, queue)
        found = await self._ensure(inquiry, _consumers_queue(inquiry, exchange, queue, ordered=subscription.ordered)) and found
        await self._bind(inquiry, queue, exchange, subscription.binding_key, found=found)

    async def ensure_dead_letters(self, inquiry: Inquiry, exchange: str, queue: str) -> None:
        """The direct exchange for dead letters, and the queue's own place behind it."""
        dlx, dlq = _dead_letter_resources(inquiry, exchange, queue)
        found = await self._ensure(inquiry, dlx)
        found = await self._ensure(inquiry, dlq) and found
        await self._bind(inquiry, dlq.name, dlx.name, queue, found=found)

    async def dead_letters_rejects(self, inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> bool:
        """Whether `queue` has the arguments that we declare, and a bound dead letter queue. False where we may not know.

        Declaring what is there changes nothing, is refused if any argument is different, and needs no right to write to the
        exchange for dead letters.
        """
        dlq = dead_letter_queue(queue)
        try:
            await _declare(inquiry, _consumers_queue(inquiry, exchange, queue, ordered=ordered))
            await inquiry.ask(lambda channel: channel.queue_bind(dlq, dead_letter_exchange(exchange), routing_key=queue))
        except (NotAllowed, Different, NotThere):
            return False
        return True

    async def ensure_delay(self, inquiry: Inquiry, exchange: str, delay: timedelta) -> None:
        """What holds a retry back for `delay` and then gives it to the queue that its routing key names."""
        name = delay_resource(exchange, delay)
        ttl = min(delay, _LONGEST_DELAY) // timedelta(milliseconds=1)
        found = await self._ensure(inquiry, Exchange(name, "fanout"))
        arguments = {**_QUORUM, **_SAFE, "x-message-ttl": ttl, "x-dead-letter-exchange": ""}
        found = await self._ensure(inquiry, Queue(name, arguments)) and found
        await self._bind(inquiry, name, name, "", found=found)

    async def _ensure(self, inquiry: Inquiry, resource: Resource) -> bool:
        """Whether it was there already."""
        name = str(resource)  # not the resource's own name: the exchange and the queue of a delay share theirs
        known = name in self._compared
        if not await is_there(inquiry, resource):
            # Several may find this at once: one reports it, and none if another has just declared it for the first time.
            deleted = known and name in self._compared
            self._compared.discard(name)
            try:
                await _declare(inquiry, resource)
            except NotAllowed:
                raise TopologyError(
                    f"the {resource} is missing, and this RabbitMQ user may not declare it: "
                    f"provision it, or grant the permission to configure it"
                ) from None
            self._compared.add(name)
            if deleted:
                self._declared_again(f"the {resource} had been deleted, and was declared again")
            return False
        if name not in self._compared:
            if (difference := await difference_of(inquiry, resource)) is not None:
                self._advise(
                    f"the {resource} exists with other properties than Outbox would give it, and is used as it is "
                    f"({difference}); {strengthening(resource)}"
                )
            self._compared.add(name)
        return True

    async def _bind(self, inquiry: Inquiry, queue: str, exchange: str, key: str, *, found: bool) -> None:
        """Bindings cannot be looked for. Who may not bind is taken to have been provisioned, if both ends were there.

        It is tried again after a growing time: each refusal costs a channel, and a line in the broker's log.
        """
        now = asyncio.get_running_loop().time()
        binding = (queue, exchange, key)
        refused = self._refused_bindings.get(binding)
        if found and refused is not None and now < refused.try_again_at:
            return
        try:
            await inquiry.ask(lambda channel: channel.queue_bind(queue, exchange, routing_key=key))
            self._refused_bindings.pop(binding, None)
        except NotAllowed:
            refused = self._refused_bindings.setdefault(binding, _RefusedBinding())
            refused.try_again_at = now + refused.pauses.next().total_seconds()
            if not found:
                raise TopologyError(
                    f"queue {queue!r} must be bound to exchange {exchange!r} with {key!r}, and this RabbitMQ user may not: "
                    f"provision the binding, or grant write to the queue and read to the exchange"
                ) from None


def resources_of(inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> tuple[Resource, ...]:
    """What a consumer of `queue` needs besides the exchange, as it is declared."""
    return *_dead_letter_resources(inquiry, exchange, queue), _consumers_queue(inquiry, exchange, queue, ordered=ordered)


async def is_there(inquiry: Inquiry, resource: Resource) -> bool:
    """Whether the broker has it. Who may not look has it provisioned; using it will tell."""
    try:
        match resource:
            case Exchange(name):
                await inquiry.ask(lambda channel: channel.exchange_declare(name, passive=True))
            case Queue(name):
                await inquiry.ask(lambda channel: channel.queue_declare(name, passive=True))
    except NotThere:
        return False
    except NotAllowed:
        return True
    return True


async def difference_of(inquiry: Inquiry, resource: Resource) -> str | None:
    """How a resource that is there differs from what we would declare; None if it does not, or if we may not know.

    Declaring again what is there changes nothing, and is refused if it is different.
    """
    try:
        await _declare(inquiry, resource)
    except NotAllowed:
        return None
    except Different as difference:
        return str(difference)
    return None


def strengthening(resource: Resource) -> str:
    """What would make a resource that is different more like what we declare."""
    match resource:
        case Exchange(_, type_):
            return f"Outbox expects a durable {type_} exchange"
        case Queue(name, arguments):
            policy = {key.removeprefix("x-"): value for key, value in arguments.items() if key not in _NO_POLICY}
            if not policy:
                return "Outbox expects a quorum queue without limits"
            command = f"rabbitmqctl set_policy --apply-to queues outbox-{name} '^{name}$' '{json.dumps(policy)}'"
            advice = f"a policy strengthens it as far as its type allows: {command}"
            if arguments.keys() >= _ONE_AT_A_TIME.keys():
                # A queue gets its single active consumer when it is made, or never.
                advice += (
                    "; if it is without x-single-active-consumer, which no policy can add, the order of its messages holds "
                    "only as long as one worker consumes from it: let it run empty and delete it, and Outbox declares it again"
                )
            return advice


def _consumers_queue(inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> Queue:
    arguments = {
        **_QUORUM,
        **_SAFE,
        **_delivery_limit(inquiry),
        "x-dead-letter-exchange": dead_letter_exchange(exchange),
        "x-dead-letter-routing-key": queue,
        **(_ONE_AT_A_TIME if ordered else {}),
    }
    return Queue(queue, arguments)


def _dead_letter_resources(inquiry: Inquiry, exchange: str, queue: str) -> tuple[Exchange, Queue]:
    dlq = Queue(dead_letter_queue(queue), {**_QUORUM, **_delivery_limit(inquiry)})
    return Exchange(dead_letter_exchange(exchange), "direct"), dlq


async def _declare(inquiry: Inquiry, resource: Resource) -> None:
    match resource:
        case Exchange(name, type_):
            await inquiry.ask(lambda channel: channel.exchange_declare(name, exchange_type=type_, durable=True))
        case Queue(name, arguments):
            await inquiry.ask(lambda channel: channel.queue_declare(name, durable=True, arguments=dict(arguments)))


def _delivery_limit(inquiry: Inquiry) -> Mapping[str, Any]:
    """Brokers from 4.0 on drop a message at its twentieth delivery unless a limit is set; older ones misread that limit."""
    return {"x-delivery-limit": -1} if broker_version(inquiry.connection) >= _NO_DELIVERY_LIMIT_SINCE else {}


NO_DELAY = timedelta(0)
ASK_AGAIN = timedelta(seconds=1)
"""After this time it is asked again whether an exchange may be written to by now; twice as long each time."""
LONGEST_REFUSAL = timedelta(seconds=30)
"""It is asked again after this time at the latest."""


class ExchangeResolver:
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

        A delay that was not announced is rounded up, since its queue stays. Where it is missing and may not be declared, the
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
                instead = min((other for other in known if other >= delay), default=max(known))
                known[delay] = known[instead]
                self._advise(
                    f"exchange {delay_resource(exchange, delay)!r} is missing and may not be declared by this RabbitMQ user: "
                    f"retries after {delay} go by {known[instead]!r} instead; provision it"
                )
        if known[delay] in self._doubted and known[delay] == delay_resource(exchange, delay):
            await self._ensure_delays(exchange, [delay])
        return known[delay]

    async def mend(self, exchange: str, queue: str) -> None:
        """Declares again what a copy needs and is missing by now, and asks again what is allowed. Raises like `to_delay`."""
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
