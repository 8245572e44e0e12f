"""Exchanges and queues: checks whether they exist, and declares the missing ones."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
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

NotFound = ChannelNotFoundEntity
AccessRefused = ChannelAccessRefused
PreconditionFailed = ChannelPreconditionFailed

_TIMEOUT = timedelta(seconds=10)
"""Longest wait for one answer. A cluster takes a while to declare a quorum queue."""


class Inquiry:
    """Asks the broker on a channel. Opens another one after each refusal, because a refusal closes the channel."""

    def __init__(self, connection: "AbstractConnection") -> None:
        self.connection = connection
        self._channel: AbstractChannel | None = None

    async def ask(self, question: Callable[["AbstractChannel"], Awaitable[T]]) -> T:
        """Returns the broker's answer. Raises a refusal (`AMQPChannelError`), or `BrokerUnavailableError` without an answer."""
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
    """Opens an inquiry on the connection of `link`. Discards the connection if it does not answer."""
    connection = await link.open()
    try:
        async with Inquiry(connection) as inquiry:
            yield inquiry
    except UnresponsiveError:
        link.discard(connection)
        raise


async def depth_of(link: Link, queue: str) -> int | None:
    """Returns how many messages wait in a queue; None if it does not exist. Raises `BrokerUnavailableError`."""
    async with inquiry_on(link) as inquiry:
        try:
            declared = await inquiry.ask(lambda channel: channel.queue_declare(queue, passive=True))
        except NotFound:
            return None
        except AMQPChannelError as error:
            raise BrokerUnavailableError(f"the depth of queue {queue!r} cannot be read: {error}") from None
    return declared.message_count or 0


Advise = Callable[[str], None]

_QUORUM: Mapping[str, Any] = {"x-queue-type": "quorum"}
_SAFE: Mapping[str, Any] = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
_NO_POLICY = ("x-queue-type", "x-single-active-consumer")
_SINGLE_ACTIVE: Mapping[str, Any] = {"x-single-active-consumer": True}
_NO_DELIVERY_LIMIT_SINCE = (4, 0)
_LONGEST_DELAY = timedelta(milliseconds=2**32 - 2)
_FIRST_BIND_PAUSE = timedelta(minutes=1)
_LONGEST_BIND_PAUSE = timedelta(hours=1)


def dead_letter_exchange(exchange: str) -> str:
    """Name of the exchange for dead letters of an exchange's consumers."""
    return f"{exchange}.dlx"


def exchange_of_dead_letters(dead_letter_exchange: str) -> str:
    """Name of the exchange whose consumers' dead letters go to `dead_letter_exchange`."""
    return dead_letter_exchange.removesuffix(".dlx")


def dead_letter_queue(queue: str) -> str:
    """Name of the queue for dead letters of a consumer's queue."""
    return f"{queue}.dlq"


def delay_resource(exchange: str, delay: timedelta) -> str:
    """Name of the exchange, and of its queue, that delay a retry by `delay`."""
    return f"{exchange}.delay_{format_duration(min(delay, _LONGEST_DELAY))}"


def rounded_delay(delay: timedelta) -> timedelta:
    """Rounds `delay` up to two significant digits, and limits it to the broker's maximum.

    Used for delays that no consumer has announced. Each distinct delay is a permanent queue, and handlers may compute delays.
    """
    milliseconds = -(-min(delay, _LONGEST_DELAY) // timedelta(milliseconds=1))
    unit = 10 ** max(0, len(str(milliseconds)) - 2)
    return timedelta(milliseconds=-(-milliseconds // unit) * unit)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A durable exchange."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"exchange {self.name!r}"


@dataclass(frozen=True, slots=True)
class Queue:
    """A durable queue."""

    name: str
    arguments: Mapping[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"queue {self.name!r}"


Resource = Exchange | Queue


@dataclass(slots=True)
class _RefusedBinding:
    """A binding that the user may not create, and when to try again."""

    try_again_at: float = 0.0
    pauses: Pauses = field(default_factory=lambda: Pauses(first=_FIRST_BIND_PAUSE, longest=_LONGEST_BIND_PAUSE))


class Topology:
    """Ensures that exchanges, queues and bindings exist. Compares each resource once with what would be declared.

    `advise` is called for a resource that differs, `report_redeclared` each time a deleted resource was declared again.
    """

    def __init__(self, advise: Advise, *, report_redeclared: Advise) -> None:
        self._advise = advise
        self._report_redeclared = report_redeclared
        self._compared: set[str] = set()
        self._declared = Counter[str]()
        self._refused_bindings: dict[tuple[str, str, str], _RefusedBinding] = {}

    async def ensure_exchange(self, inquiry: Inquiry, exchange: str) -> bool:
        """Ensures the topic exchange for messages. Returns whether it existed."""
        return await self._ensure(inquiry, Exchange(exchange, "topic"))

    async def ensure_consumer(self, inquiry: Inquiry, subscription: Subscription) -> None:
        """Ensures everything from the exchange to the dead letter queue of a consumer's queue."""
        exchange, queue = subscription.exchange_name, subscription.queue
        found = await self.ensure_exchange(inquiry, exchange)
        # Dead letters first: from its first message on, the queue has somewhere to put them. Bound last, when all is in place.
        await self.ensure_dead_letters(inquiry, exchange, queue)
        found = await self._ensure(inquiry, _consumers_queue(inquiry, exchange, queue, ordered=subscription.ordered)) and found
        await self._bind(inquiry, queue, exchange, subscription.binding_key, found=found)

    async def ensure_dead_letters(self, inquiry: Inquiry, exchange: str, queue: str) -> None:
        """Ensures the direct exchange for dead letters, and the dead letter queue of `queue`."""
        dlx, dlq = _dead_letter_resources(inquiry, exchange, queue)
        found = await self._ensure(inquiry, dlx)
        found = await self._ensure(inquiry, dlq) and found
        await self._bind(inquiry, dlq.name, dlx.name, queue, found=found)

    async def dead_letters_rejects(self, inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> bool:
        """Whether the broker is certain to dead-letter what is rejected from `queue`: its arguments are those of `Queue`.

        Returns False if the user may not find out.
        """
        # Declaring an existing queue changes nothing, is refused if any argument differs, and needs no permission to write to
        # the exchange for dead letters.
        dlq = dead_letter_queue(queue)
        try:
            await _declare(inquiry, _consumers_queue(inquiry, exchange, queue, ordered=ordered))
            await inquiry.ask(lambda channel: channel.queue_bind(dlq, dead_letter_exchange(exchange), routing_key=queue))
        except (AccessRefused, PreconditionFailed, NotFound):
            return False
        return True

    async def ensure_delay(self, inquiry: Inquiry, exchange: str, delay: timedelta) -> None:
        """Ensures the exchange and queue that delay a retry by `delay` and then send it to the queue in its routing key."""
        name = delay_resource(exchange, delay)
        ttl = min(delay, _LONGEST_DELAY) // timedelta(milliseconds=1)
        found = await self._ensure(inquiry, Exchange(name, "fanout"))
        arguments = {**_QUORUM, **_SAFE, "x-message-ttl": ttl, "x-dead-letter-exchange": ""}
        found = await self._ensure(inquiry, Queue(name, arguments)) and found
        await self._bind(inquiry, name, name, "", found=found)

    async def _ensure(self, inquiry: Inquiry, resource: Resource) -> bool:
        """Declares `resource` if it is missing. Returns whether it existed."""
        name = str(resource)  # with its kind: the exchange and the queue of a delay have the same name
        known, times = name in self._compared, self._declared[name]
        if not await exists(inquiry, resource):
            # Several tasks may find it missing at once, and one may have declared it since: only the first reports it, and none
            # if it was never there before.
            deleted = known and name in self._compared and self._declared[name] == times
            self._compared.discard(name)
            try:
                await _declare(inquiry, resource)
            except AccessRefused:
                raise TopologyError(
                    f"the {resource} is missing, and this RabbitMQ user may not declare it: "
                    f"provision it, or grant the permission to configure it"
                ) from None
            self._compared.add(name)
            self._declared[name] += 1
            if deleted:
                self._report_redeclared(f"the {resource} had been deleted, and was declared again")
            return False
        if name not in self._compared:
            with suppress(AccessRefused):  # the user may not find out
                if (difference := await difference_of(inquiry, resource)) is not None:
                    self._advise(
                        f"the {resource} exists with properties other than those Outbox declares, and is used as it is "
                        f"({difference}); {advice_on(resource)}"
                    )
            self._compared.add(name)
        return True

    async def _bind(self, inquiry: Inquiry, queue: str, exchange: str, key: str, *, found: bool) -> None:
        """Binds `queue` to `exchange`. If the user may not and both were `found`, assumes that the binding is provisioned."""
        now = asyncio.get_running_loop().time()
        binding = (queue, exchange, key)
        refused = self._refused_bindings.get(binding)
        # AMQP cannot list bindings, and each refusal costs a channel and a line in the broker's log. So a refused binding is
        # tried again after growing pauses only.
        if found and refused is not None and now < refused.try_again_at:
            return
        try:
            await inquiry.ask(lambda channel: channel.queue_bind(queue, exchange, routing_key=key))
            self._refused_bindings.pop(binding, None)
        except AccessRefused:
            refused = self._refused_bindings.setdefault(binding, _RefusedBinding())
            refused.try_again_at = now + refused.pauses.next().total_seconds()
            if not found:
                raise TopologyError(
                    f"queue {queue!r} must be bound to exchange {exchange!r} with {key!r}, and this RabbitMQ user may not: "
                    f"provision the binding, or grant write to the queue and read to the exchange"
                ) from None


def resources_of(inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> tuple[Resource, ...]:
    """Returns the resources, besides the exchange, that a consumer of `queue` needs."""
    return *_dead_letter_resources(inquiry, exchange, queue), _consumers_queue(inquiry, exchange, queue, ordered=ordered)


async def exists(inquiry: Inquiry, resource: Resource) -> bool:
    """Whether the resource exists. True if the user may not check: it is assumed to be provisioned."""
    try:
        match resource:
            case Exchange(name):
                await inquiry.ask(lambda channel: channel.exchange_declare(name, passive=True))
            case Queue(name):
                await inquiry.ask(lambda channel: channel.queue_declare(name, passive=True))
    except NotFound:
        return False
    except AccessRefused:
        return True
    return True


async def difference_of(inquiry: Inquiry, resource: Resource) -> str | None:
    """Returns how an existing resource differs from `resource`; None if it does not.

    Raises `AccessRefused` if the user may not find out.
    """
    # Declaring an existing resource changes nothing, and is refused if it differs.
    try:
        await _declare(inquiry, resource)
    except PreconditionFailed as difference:
        return str(difference)
    return None


def advice_on(resource: Resource) -> str:
    """Returns advice on how to bring a resource that differs closer to what is declared."""
    match resource:
        case Exchange(_, type_):
            return f"Outbox expects a durable {type_} exchange"
        case Queue(name, arguments):
            policy = {key.removeprefix("x-"): value for key, value in arguments.items() if key not in _NO_POLICY}
            if not policy:
                return "Outbox expects a quorum queue without limits"
            command = f"rabbitmqctl set_policy --apply-to queues outbox-{name} '^{name}$' '{json.dumps(policy)}'"
            advice = f"a policy strengthens it as far as its type allows: {command}"
            if arguments.keys() >= _SINGLE_ACTIVE.keys():
                # This argument can only be set when a queue is created.
                advice += (
                    "; if it lacks x-single-active-consumer, which no policy can add, its messages stay in order only while "
                    "one worker consumes from it: let it run empty and delete it, and Outbox declares it again"
                )
            return advice


def _consumers_queue(inquiry: Inquiry, exchange: str, queue: str, *, ordered: bool) -> Queue:
    arguments = {
        **_QUORUM,
        **_SAFE,
        **_delivery_limit(inquiry),
        "x-dead-letter-exchange": dead_letter_exchange(exchange),
        "x-dead-letter-routing-key": queue,
        **(_SINGLE_ACTIVE if ordered else {}),
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
    # From 4.0 on, brokers drop a message after 20 deliveries unless a limit is set. Older ones misread -1.
    return {"x-delivery-limit": -1} if broker_version(inquiry.connection) >= _NO_DELIVERY_LIMIT_SINCE else {}


NO_DELAY = timedelta(0)
FIRST_RECHECK = timedelta(seconds=1)
"""First pause before a refused permission to publish is checked again; doubles each time."""
LONGEST_RECHECK = timedelta(seconds=30)
"""Longest such pause."""


class ExchangeResolver:
    """Finds the exchanges for retries, dead letters and single queues. Caches what exists and what the user may publish to."""

    def __init__(self, pipeline: "Pipeline", link: Link, topology: Topology, advise: Advise) -> None:
        self._pipeline = pipeline
        self._link = link
        self._topology = topology
        self._advise = advise
        self._permissions: dict[str, _Permission] = {}
        self._unchecked: set[str] = set()
        self._delays: dict[str, dict[timedelta, str]] = {}

    async def prepare(self, exchange: str, delays: Sequence[timedelta]) -> None:
        """Ensures and checks everything that a consumer needs, before its first message arrives."""
        known = self._delays.setdefault(exchange, {})
        await self._ensure_delays(exchange, [delay for delay in dict.fromkeys(delays) if delay not in known])
        await self.to_queue(exchange)
        await self.to_dead_letters(exchange)

    async def require_dead_letters(self, exchange: str, queue: str, *, ordered: bool) -> None:
        """Raises `TopologyError` unless dead letters of `queue` are certain to arrive: published here or by the broker."""
        if await self.to_dead_letters(exchange) is None and not await self.rejects_are_safe(exchange, queue, ordered=ordered):
            dlx = dead_letter_exchange(exchange)
            raise TopologyError(
                f"dead letters of queue {queue!r} could be lost: this RabbitMQ user may not write to exchange {dlx!r}, and "
                f"it is not certain that the queue has x-dead-letter-exchange {dlx!r}, x-dead-letter-routing-key {queue!r} and "
                f"x-dead-letter-strategy 'at-least-once'. Grant the permission to write to {dlx!r}; or let Outbox declare the "
                f"queue, and grant the permission to configure it, without which its arguments cannot be checked"
            )

    async def rejects_are_safe(self, exchange: str, queue: str, *, ordered: bool) -> bool:
        """Whether the broker is certain to dead-letter what is rejected from `queue`. False if that cannot be found out."""
        async with inquiry_on(self._link) as inquiry:
            return await self._topology.dead_letters_rejects(inquiry, exchange, queue, ordered=ordered)

    async def to_queue(self, exchange: str) -> str:
        """Returns the exchange that routes a message to the queue named by its routing key."""
        if await self._can_publish(DEFAULT_EXCHANGE):
            return DEFAULT_EXCHANGE
        return await self.to_delay(exchange, NO_DELAY)

    async def to_dead_letters(self, exchange: str) -> str | None:
        """Returns the exchange for dead letters; None if the user may not publish to it."""
        dlx = dead_letter_exchange(exchange)
        return dlx if await self._can_publish(dlx) else None

    async def to_delay(self, exchange: str, delay: timedelta) -> str:
        """Returns the exchange that delays a message by `delay`.

        Rounds a delay up that was not announced. If its exchange is missing and may not be declared, uses the next longer
        delay, or else the longest. Raises `TopologyError` if there is none at all.
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
                    f"retries after {delay} use {known[instead]!r} instead; provision it"
                )
        if known[delay] in self._unchecked and known[delay] == delay_resource(exchange, delay):
            await self._ensure_delays(exchange, [delay])
        return known[delay]

    async def declare_missing(self, exchange: str, queue: str) -> None:
        """Declares again what copies need and is missing, and checks permissions again. Raises `TopologyError`."""
        for permission in self._permissions.values():
            if permission.granted:
                permission.checked_on = None
        async with inquiry_on(self._link) as inquiry:
            await self._topology.ensure_dead_letters(inquiry, exchange, queue)
            await self.ensure_known_delays(inquiry, exchange)

    async def ensure_known_delays(self, inquiry: Inquiry, exchange: str) -> None:
        """Declares known delays again that are missing. Raises `TopologyError`."""
        for delay, name in list(self._delays.get(exchange, {}).items()):
            if name == delay_resource(exchange, delay):
                await self._topology.ensure_delay(inquiry, exchange, delay)
                self._unchecked.discard(name)

    def recheck_delays(self) -> None:
        """Makes each delay be ensured again before its next use, after an exchange was missing."""
        self._unchecked |= {name for delays in self._delays.values() for name in delays.values()}

    async def _ensure_delays(self, exchange: str, delays: Sequence[timedelta]) -> None:
        if not delays:
            return
        async with inquiry_on(self._link) as inquiry:
            for delay in delays:
                await self._topology.ensure_delay(inquiry, exchange, delay)
                self._delays[exchange][delay] = delay_resource(exchange, delay)
                self._unchecked.discard(delay_resource(exchange, delay))

    async def _can_publish(self, exchange: str) -> bool:
        # Checked once per connection. Each refusal costs a channel and a line in the broker's log, so a refusal is checked
        # again after growing pauses only.
        now = asyncio.get_running_loop().time()
        permission = self._permissions.setdefault(exchange, _Permission())
        if (
            permission.checked_on is None
            or permission.checked_on is not self._link.current
            or (not permission.granted and now >= permission.check_again_at)
        ):
            permission.granted = await self._pipeline.can_publish(exchange)
            permission.checked_on = self._link.current
            if permission.granted:
                permission.pauses.reset()
            else:
                permission.check_again_at = now + permission.pauses.next().total_seconds()
        return permission.granted


@dataclass(slots=True)
class _Permission:
    """Whether the user may publish to an exchange, the connection that was asked, and when to check a refusal again."""

    granted: bool = False
    checked_on: "AbstractConnection | None" = None
    check_again_at: float = 0.0
    pauses: Pauses = field(default_factory=lambda: Pauses(first=FIRST_RECHECK, longest=LONGEST_RECHECK))
