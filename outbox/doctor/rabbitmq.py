"""Examines RabbitMQ: whether exchanges, queues and policies fit relays and workers. Declares nothing."""

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
    AccessRefused,
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
"""Retry delays of a worker without a setting."""


async def examine_rabbitmq(
    url: str, consumers: "Sequence[Consumer]", *, exchange_name: str, management_url: str | None, consumer_timeout: timedelta
) -> list[Finding]:
    """Compares the exchanges and queues in the virtual host of `url` with what these consumers declare.

    Uses AMQP, and the management API if its address is given, which shows more. Raises `BrokerUnavailableError`.
    """
    link = OwnedConnection(amqp_url(url, argument="broker_url"), purpose="outbox doctor", connect_timeout=CONNECT_TIMEOUT)
    host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
    management = None if management_url is None else Management(management_url, virtual_host=host)
    resources: dict[str, Resource] = {exchange_name: Exchange(exchange_name, "topic")}
    problem: str | None = None
    try:
        async with inquiry_on(link) as inquiry:
            version = broker_version(inquiry.connection)
            if management is not None and await exists(inquiry, resources[exchange_name]):
                problem = await management.problem_with(exchange_name)
                management = None if problem else management
            for consumer in consumers:
                for resource in resources_of(inquiry, exchange_name, consumer.queue, ordered=consumer.ordered):
                    resources[f"{type(resource).__name__} {resource.name}"] = resource
            missing = [str(resource) for resource in resources.values() if not await exists(inquiry, resource)]
            examined = [
                await _examine_existing(inquiry, management, resource)
                for resource in resources.values()
                if str(resource) not in missing
            ]
    finally:
        await link.close()
    text = "RabbitMQ " + ".".join(map(str, version))
    is_new = version >= OLDEST_BROKER
    findings = [well("broker", text) if is_new else error("broker", f"{text} is too old", "3.10 or newer is needed")]
    wrong = [finding for finding in examined if finding is not None]
    if missing:
        # One finding: before the first worker ran, nothing is there, and a list of all of it hides what else is wrong.
        verb = "is missing" if len(missing) == 1 else "are missing"
        wrong.insert(
            0, error(_CHECK, f"the {', the '.join(missing)} {verb}", "start the workers, which declare them, or create them")
        )
    findings += wrong or [well(_CHECK, f"{len(resources)} exchanges and queues exist as declared")]
    if problem is not None:
        hint = "correct OUTBOX_MANAGEMENT_URL: policies and bindings were not examined"
        findings.append(warning(_CHECK, problem, hint))
    for consumer in consumers:
        # An ordered consumer keeps a message unsettled during the delays before its retries, too.
        delays = consumer.strategy(DEFAULT_DELAYS).announced if consumer.ordered else ()
        longest = (consumer.options.timeout or timedelta(0)) * (len(delays) + 1) + sum(delays, timedelta(0))
        # After its timeout the broker closes the channel, and redelivers all messages in flight on it.
        if longest >= consumer_timeout:
            summary = f"the consumer of {consumer.queue!r} may hold a message for {longest}"
            hint = "raise consumer_timeout of the broker, or shorten the handler's timeout or, if it is ordered, its retries"
            findings.append(warning("timeouts", f"{summary}, but the broker allows {consumer_timeout}", hint))
    if management is not None:
        return findings + await _examine_policies(management, consumers, exchange_name)
    if consumers and problem is None:
        note = "policies and old bindings were not examined: give the address of the management API"
        findings.append(well(_CHECK, note))
    return findings


async def _examine_existing(inquiry: Inquiry, management: Management | None, resource: Resource) -> Finding | None:
    try:
        difference = await difference_of(inquiry, resource)
    except AccessRefused:
        return well(_CHECK, f"the {resource} exists; this user may not compare it with its declaration")
    if difference is None:
        return None
    finding = warning
    if isinstance(resource, Queue):
        if management is None:
            # Without the management API a policy cannot be seen that may replace the missing argument: assume the worst for
            # limits that delete dead letters.
            limited = any(f"x-{limit}" in difference for limit in _LIMITS)
            finding = error if limited and resource.name.endswith(".dlq") else warning
        else:
            found = await management.queue(resource.name)
            wanted = {name.removeprefix("x-"): value for name, value in resource.arguments.items()}
            # Policies may set everything that the arguments lack.
            if found is not None and wanted.items() <= settings_in_force(found).items():
                return None
    return finding(_CHECK, f"the {resource} differs from its declaration: {difference}", advice_on(resource))


async def _examine_policies(management: Management, consumers: "Sequence[Consumer]", exchange: str) -> list[Finding]:
    """Examines policies and bindings of the queues, which only the management API shows."""

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
        # An existing queue always has the binding to the default exchange. A queue without any is missing, and that is
        # already a finding.
        if bindings and not keys & {consumer.binding_key, "#"}:
            summary = f"the queue {consumer.queue!r} is not bound to {exchange!r} with {consumer.binding_key!r}"
            hint = "start its worker, which binds it if its user may, or bind it; until then its messages are unroutable"
            findings.append(error(_CHECK, summary, hint))
    delays = {delay for consumer in consumers for delay in consumer.strategy(DEFAULT_DELAYS).announced}
    for delay in sorted(delays):
        findings += await limits(delay_resource(exchange, delay), check_delay_queue)
    return findings


def old_binding(queue: str, key: str, *, exchange: str) -> Finding:
    """Finding for a binding that no consumer declares."""
    return warning(
        _CHECK,
        f"the queue {queue!r} is still bound with {key!r}, which its consumer does not declare",
        f"if it is no longer needed, unbind it from {exchange!r}: messages that match it still arrive",
    )
