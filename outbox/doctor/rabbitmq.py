"""Examines RabbitMQ: whether relays and workers find what they need. Declares nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from outbox.core.findings import Finding, error, warning, well
from outbox.core.urls import amqp_url
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, OwnedConnection, broker_version
from outbox.transports.rabbitmq.limits import (
    check_consumer_queue,
    check_dead_letter_queue,
    check_delay_queue,
    settings_in_force,
)
from outbox.transports.rabbitmq.overview import Management
from outbox.transports.rabbitmq.topology import (
    Exchange,
    Inquiry,
    Queue,
    Resource,
    advice_on,
    dead_letter_queue,
    delay_resource,
    difference_of,
    exists,
    inquiry_on,
    resources_of,
)

if TYPE_CHECKING:
    from outbox.engine.consumer import Consumer

_CHECK = "topology"
_LIMITS = ("message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit")
_CheckQueue = Callable[[str, Mapping[str, Any]], Iterable[Finding]]
OLDEST_BROKER = (3, 10)
DEFAULT_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (1, 10, 60, 300))
"""Those of a worker that names none."""


async def examine_rabbitmq(
    url: str, consumers: "Sequence[Consumer]", *, exchange_name: str, management_url: str | None, consumer_timeout: timedelta
) -> list[Finding]:
    """What is missing or different of what these consumers declare in the virtual host of `url`.

    AMQP tells a part of it, the management API more, if there is an address of it. Raises `BrokerUnavailableError`.
    """
    link = OwnedConnection(amqp_url(url, argument="broker_url"), purpose="outbox doctor", connect_timeout=CONNECT_TIMEOUT)
    host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
    management = None if management_url is None else Management(management_url, virtual_host=host)
    resources: dict[str, Resource] = {exchange_name: Exchange(exchange_name, "topic")}
    try:
        async with inquiry_on(link) as inquiry:
            version = broker_version(inquiry.connection)
            for consumer in consumers:
                for resource in resources_of(inquiry, exchange_name, consumer.queue, ordered=consumer.ordered):
                    resources[f"{type(resource).__name__} {resource.name}"] = resource
            looked_at = [await _examine_resource(inquiry, management, resource) for resource in resources.values()]
    finally:
        await link.close()
    text = "RabbitMQ " + ".".join(map(str, version))
    is_new = version >= OLDEST_BROKER
    findings = [well("broker", text) if is_new else error("broker", f"{text} is too old", "3.10 or newer is needed")]
    wrong = [finding for finding in looked_at if finding is not None]
    findings += wrong or [well(_CHECK, f"{len(resources)} exchanges and queues are there, as they are declared")]
    for consumer in consumers:
        # An ordered consumer keeps a message unsettled while it waits for its retries, too.
        delays = consumer.strategy(DEFAULT_DELAYS).announced if consumer.ordered else ()
        longest = (consumer.options.timeout or timedelta(0)) * (len(delays) + 1) + sum(delays, timedelta(0))
        # The broker closes the channel of a message that is not settled in time, with all the others in flight on it.
        if longest >= consumer_timeout:
            summary = f"the consumer of {consumer.queue!r} may hold a message for {longest}"
            hint = "raise consumer_timeout of the broker, or shorten the handler's timeout or, if it is ordered, its retries"
            findings.append(warning("timeouts", f"{summary}, the broker lets it for {consumer_timeout}", hint))
    if management is not None:
        return findings + await _examine_policies(management, consumers, exchange_name)
    if consumers:
        note = "policies and old bindings were not looked at: give the address of the management API"
        findings.append(well(_CHECK, note))
    return findings


async def _examine_resource(inquiry: Inquiry, management: Management | None, resource: Resource) -> Finding | None:
    if not await exists(inquiry, resource):
        return error(_CHECK, f"the {resource} is missing", "start its consumer, which declares it, or provision it")
    difference = await difference_of(inquiry, resource)
    if difference is None:
        return None
    say = warning
    if isinstance(resource, Queue):
        if management is None:
            # Whether anything is lost the management API says where there is one: a policy may make up for an argument.
            limited = any(f"x-{limit}" in difference for limit in _LIMITS)
            say = error if limited and resource.name.endswith(".dlq") else warning
        else:
            found = await management.queue(resource.name)
            wanted = {name.removeprefix("x-"): value for name, value in resource.arguments.items()}
            if found is not None and wanted.items() <= settings_in_force(found).items():
                return None  # policies give the queue all that its arguments lack
    return say(_CHECK, f"the {resource} is different from what is declared: {difference}", advice_on(resource))


async def _examine_policies(management: Management, consumers: "Sequence[Consumer]", exchange: str) -> list[Finding]:
    """What policies and bindings do to the queues, which only the management API tells."""

    async def limits(queue: str, check_queue: _CheckQueue) -> list[Finding]:
        found = await management.queue(queue)
        return [] if found is None else list(check_queue(queue, settings_in_force(found)))

    findings: list[Finding] = []
    for consumer in consumers:
        findings += await limits(consumer.queue, check_consumer_queue)
        findings += await limits(dead_letter_queue(consumer.queue), check_dead_letter_queue)
        bindings = await management.bindings(consumer.queue)
        keys = {binding["routing_key"] for binding in bindings if binding.get("source") == exchange}
        old = sorted(keys - {consumer.binding_key})
        findings += [old_binding(consumer.queue, key, exchange=exchange) for key in old]
        # A queue that is there is always bound to the default exchange; one that is not was named before.
        if bindings and not keys & {consumer.binding_key, "#"}:
            what = f"the queue {consumer.queue!r} is not bound to {exchange!r} with {consumer.binding_key!r}"
            hint = "start its worker, which binds it if its user may, or bind it; until then messages for it are unroutable"
            findings.append(error(_CHECK, what, hint))
    delays = {delay for consumer in consumers for delay in consumer.strategy(DEFAULT_DELAYS).announced}
    for delay in sorted(delays):
        findings += await limits(delay_resource(exchange, delay), check_delay_queue)
    return findings


def old_binding(queue: str, key: str, *, exchange: str) -> Finding:
    """What is said of a binding that no consumer names."""
    return warning(
        _CHECK,
        f"the queue {queue!r} is still bound with {key!r}, which its consumer does not name",
        f"if it is no longer needed, unbind it from {exchange!r}: messages that match it still arrive",
    )
