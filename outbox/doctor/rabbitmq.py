"""Examines RabbitMQ: whether relays and workers find what they need. Declares nothing."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from outbox.core.findings import Finding, error, warning, well
from outbox.core.urls import amqp_url
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, OwnedConnection, broker_version
from outbox.transports.rabbitmq.limits import losing_dead_letters, losing_messages, losing_retries, settings_in_force
from outbox.transports.rabbitmq.overview import Management
from outbox.transports.rabbitmq.topology import (
    Exchange,
    Inquiry,
    Queue,
    Resource,
    dead_letter_queue,
    delay_resource,
    difference_of,
    inquiry_on,
    is_there,
    resources_of,
    strengthening,
)

if TYPE_CHECKING:
    from outbox.engine.consumer import Consumer

_CHECK = "topology"
_LIMITS = ("message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit")
_Losing = Callable[[str, Mapping[str, Any]], list[Finding]]
OLDEST_BROKER = (3, 10)
DEFAULT_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (1, 10, 60, 300))
"""Those of a worker that names none."""


class Checkup:
    """An examination of one virtual host, with what AMQP tells, and with the management API if there is an address of it."""

    def __init__(self, url: str, *, exchange_name: str, management_url: str | None) -> None:
        address = amqp_url(url, argument="broker_url")
        self._link = OwnedConnection(address, purpose="outbox doctor", connect_timeout=CONNECT_TIMEOUT)
        self._exchange = exchange_name
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        self._management = None if management_url is None else Management(management_url, virtual_host=host)

    async def examine(self, consumers: "Sequence[Consumer]", *, consumer_timeout: timedelta) -> list[Finding]:
        """What is missing or different of what these consumers declare. Raises `BrokerUnavailableError`."""
        try:
            async with inquiry_on(self._link) as inquiry:
                findings = [_version(inquiry), *await self._resources(inquiry, consumers)]
        finally:
            await self._link.close()
        findings += _timeouts(consumers, consumer_timeout)
        return findings + await self._managed(consumers)

    async def _resources(self, inquiry: Inquiry, consumers: "Sequence[Consumer]") -> list[Finding]:
        resources: dict[str, Resource] = {self._exchange: Exchange(self._exchange, "topic")}
        for consumer in consumers:
            for resource in resources_of(inquiry, self._exchange, consumer.queue, ordered=consumer.ordered):
                resources[f"{type(resource).__name__} {resource.name}"] = resource
        findings = [await self._looked_at(inquiry, resource) for resource in resources.values()]
        wrong = [finding for finding in findings if finding is not None]
        return wrong or [well(_CHECK, f"{len(resources)} exchanges and queues are there, as they are declared")]

    async def _looked_at(self, inquiry: Inquiry, resource: Resource) -> Finding | None:
        if not await is_there(inquiry, resource):
            return error(_CHECK, f"the {resource} is missing", "start its consumer, which declares it, or provision it")
        difference = await difference_of(inquiry, resource)
        if difference is None or await self._strengthened(resource):
            return None
        # Whether anything is lost is told by the management API where there is one: a policy may make up for an argument.
        loses = self._management is None and isinstance(resource, Queue) and _loses_dead_letters(resource, difference)
        say = error if loses else warning
        return say(_CHECK, f"the {resource} is different from what is declared: {difference}", strengthening(resource))

    async def _strengthened(self, resource: Resource) -> bool:
        """Whether policies give a queue all that its arguments lack, as far as that can be known."""
        if self._management is None or not isinstance(resource, Queue):
            return False
        found = await self._management.queue(resource.name)
        wanted = {name.removeprefix("x-"): value for name, value in resource.arguments.items()}
        return found is not None and wanted.items() <= settings_in_force(found).items()

    # --- what the management API adds

    async def _managed(self, consumers: "Sequence[Consumer]") -> list[Finding]:
        if self._management is None:
            note = "policies and old bindings were not looked at: give the address of the management API"
            return [well(_CHECK, note)] if consumers else []
        findings: list[Finding] = []
        for consumer in consumers:
            findings += await self._limits(self._management, consumer.queue, losing_messages)
            findings += await self._limits(self._management, dead_letter_queue(consumer.queue), losing_dead_letters)
            findings += await self._bindings(self._management, consumer)
        delays = {delay for consumer in consumers for delay in consumer.strategy(DEFAULT_DELAYS).announced}
        for delay in sorted(delays):
            findings += await self._limits(self._management, delay_resource(self._exchange, delay), losing_retries)
        return findings

    async def _limits(self, management: Management, queue: str, losing: _Losing) -> list[Finding]:
        found = await management.queue(queue)
        return [] if found is None else losing(queue, settings_in_force(found))

    async def _bindings(self, management: Management, consumer: "Consumer") -> list[Finding]:
        bindings = await management.bindings(consumer.queue)
        keys = {binding["routing_key"] for binding in bindings if binding.get("source") == self._exchange}
        old = sorted(keys - {consumer.binding_key})
        findings = [old_binding(consumer.queue, key, exchange=self._exchange) for key in old]
        # A queue that is there is always bound to the default exchange; one that is not was named before.
        if bindings and not keys & {consumer.binding_key, "#"}:
            what = f"the queue {consumer.queue!r} is not bound to {self._exchange!r} with {consumer.binding_key!r}"
            hint = "start its worker, which binds it if its user may, or bind it; until then messages for it are unroutable"
            findings.append(error(_CHECK, what, hint))
        return findings


def old_binding(queue: str, key: str, *, exchange: str) -> Finding:
    """What is said of a binding that no consumer names."""
    return warning(
        _CHECK,
        f"the queue {queue!r} is still bound with {key!r}, which its consumer does not name",
        f"if nobody needs it any more, unbind it from {exchange!r}: messages that match it still arrive",
    )


def _version(inquiry: Inquiry) -> Finding:
    version = broker_version(inquiry.connection)
    text = "RabbitMQ " + ".".join(map(str, version))
    return (
        well("broker", text) if version >= OLDEST_BROKER else error("broker", f"{text} is too old", "3.10 or newer is needed")
    )


def _loses_dead_letters(queue: Queue, difference: str) -> bool:
    return queue.name.endswith(".dlq") and any(f"x-{limit}" in difference for limit in _LIMITS)


def _timeouts(consumers: "Sequence[Consumer]", consumer_timeout: timedelta) -> list[Finding]:
    """The broker closes the channel of a message that is not settled in time, with all the others in hand."""
    return [
        warning(
            "timeouts",
            f"the consumer of {consumer.queue!r} may hold a message for {longest}, the broker lets it for {consumer_timeout}",
            "raise consumer_timeout of the broker, or shorten the handler's timeout or, if it is ordered, its retries",
        )
        for consumer in consumers
        if (longest := _longest_in_hand(consumer)) >= consumer_timeout
    ]


def _longest_in_hand(consumer: "Consumer") -> timedelta:
    """How long a message may stay in hand, as far as the consumer says: ordered ones wait for their retries there, too."""
    delays = consumer.strategy(DEFAULT_DELAYS).announced if consumer.ordered else ()
    running = consumer.terms.timeout or timedelta(0)
    return running * (len(delays) + 1) + sum(delays, timedelta(0))
