"""Harmful numbers and times are refused by the constructors, with the reason."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from outbox import Archiver, Consumer, MessageRelay, Worker
from outbox.dead_letters.actions import Canary, Options
from outbox.errors import ConfigurationError
from outbox.maintenance import Maintenance

POSTGRES = "postgresql://localhost/shop"
AMQP = "amqp://localhost"


def relay(**arguments: Any) -> MessageRelay:
    return MessageRelay(POSTGRES, broker=POSTGRES, **arguments)


def worker(**arguments: Any) -> Worker:
    return Worker(broker=POSTGRES, **arguments)


def archiver(**arguments: Any) -> Archiver:
    return Archiver(POSTGRES, broker=AMQP, **arguments)


def maintenance(**arguments: Any) -> Maintenance:
    return Maintenance(POSTGRES, **arguments)


def consumer(**arguments: Any) -> Consumer:
    return Consumer("order.placed", print_body, "mail", **arguments)


def options(**arguments: Any) -> Options:
    return Options(**arguments)


def canary(**arguments: Any) -> Canary:
    return Canary(**{"count": 1, "wait": timedelta(seconds=1), **arguments})


async def print_body(body: bytes) -> None:
    print(body)


def _within(make: Callable[..., object], name: str, *values: Any) -> list[tuple[Callable[..., object], str, Any]]:
    return [(make, name, value) for value in values]


DAY = 86_400


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        *_within(relay, "lanes", 0, -1, 65, 1_000_000, 2.0, True, math.nan, math.inf),
        *_within(relay, "batch_size", 0, -1, 100_001, True, 10.0, math.inf),
        *_within(relay, "max_attempts", 0, True, 2**31, math.inf),
        *_within(relay, "publish_timeout", 0, -1, 0.001, 3_601, True, math.nan, math.inf),
        *_within(relay, "notification_timeout", 0, 0.001, DAY + 1, math.inf, timedelta(days=2)),
        *_within(relay, "poll_interval", 0, 1e-6, 0.009, DAY + 1, math.nan),
        *_within(relay, "grace_period", 0, -1, DAY + 1, math.inf, True),
        *_within(relay, "heartbeat_interval", 0, 0.001, DAY + 1, math.inf),
        *_within(worker, "prefetch_count", 0, 65_536, True, 1.0),
        *_within(worker, "inbox_wait", 0, 31, math.nan),
        *_within(worker, "grace_period", 0, DAY + 1, math.inf),
        *_within(worker, "heartbeat_interval", 0, 0.001, math.inf),
        *_within(archiver, "discover_every", 0, 0.001, DAY + 1, math.inf),
        *_within(archiver, "grace_period", DAY + 1),
        *_within(maintenance, "inbox_retention", 0, 1, math.nan),
        *_within(maintenance, "history_retention", 0, 1, math.inf),
        *_within(maintenance, "dead_letter_retention", 0, 1, True),
        *_within(maintenance, "audit_retention", 0, 1),
        *_within(consumer, "max_deliveries", 0, True, math.inf),
        *_within(consumer, "timeout", 0, -1, math.nan, math.inf),
        *_within(options, "rate", 0, -1, 1e-300, 1e9, True, math.nan, math.inf),
        *_within(options, "max_items", 0, True),
        *_within(canary, "count", 0, True),
    ],
)
def test_harmful_values_are_refused_by_name(make: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name if name != "count" else "count of a canary"):
        make(**{name: value})


@pytest.mark.parametrize(
    ("make", "arguments", "reason"),
    [
        (relay, {"lanes": 1_000_000}, "from 1 to 64, not 1000000: each holds a connection, a transaction and a batch"),
        (relay, {"batch_size": 1_000_000}, "a batch is one transaction"),
        (relay, {"publish_timeout": DAY}, "rows are locked meanwhile"),
        (relay, {"poll_interval": 0.001}, "at least 0.01 seconds, not 0.001: a shorter interval would overload the database"),
        (worker, {"grace_period": timedelta(days=2)}, "the limit is 86,400 seconds: a process that is asked to stop must stop"),
        (maintenance, {"inbox_retention": 1}, "deleted before it is of use"),
        (consumer, {"pause_on": ConnectionError, "pause_for": timedelta(days=2)}, "no success can end it early"),
        (canary, {"wait": timedelta.max}, "at most 7 days"),
    ],
)
def test_the_error_names_the_reason(make: Callable[..., object], arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (relay, {"lanes": 64, "batch_size": 100_000, "publish_timeout": 3_600, "poll_interval": 0.01, "grace_period": DAY}),
        (relay, {"notification_timeout": DAY, "heartbeat_interval": DAY, "max_attempts": 2**31 - 1}),
        (worker, {"prefetch_count": 65_535, "inbox_wait": 30, "grace_period": DAY}),
        (maintenance, {"inbox_retention": 60, "history_retention": 60, "dead_letter_retention": None}),
        (consumer, {"pause_on": ConnectionError, "pause_for": timedelta(days=1), "timeout": timedelta(days=36_500)}),
        (options, {"rate": 0.001}),
    ],
)
def test_the_bounds_themselves_are_accepted(make: Callable[..., object], arguments: dict[str, Any]) -> None:
    make(**arguments)
