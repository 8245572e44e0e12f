"""Typed events: what is published, and which bodies of which versions are read."""

import asyncio
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from outbox import Consumer, OutboxMessage, consume
from outbox.contracts import Event
from outbox.errors import (
    ConfigurationError,
    EncodingError,
    MalformedMessageError,
    SignatureError,
    UnsupportedVersionError,
)
from outbox.testing import RecordingPublisher


class Order(BaseModel):
    model_config = ConfigDict(strict=True)

    number: int
    currency: str
    placed_on: date


class Invoice(BaseModel):
    number: int


NEW = b'{"number": 7, "currency": "EUR", "placed_on": "2026-03-01"}'


def order_placed(**options: Any) -> Event[Order]:
    """Version 3: 1 called the number `id`, and 2 had no currency."""
    event = Event("order.placed", Order, version=3, **options)

    @event.upcast(from_=2)
    def add_currency(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "currency": "EUR"}

    @event.upcast(from_=1)
    def rename(body: dict[str, Any]) -> dict[str, Any]:
        return {"number": body.pop("id"), **body}

    return event


ORDER = Order(number=7, currency="EUR", placed_on=date(2026, 3, 1))


def test_a_message_has_the_routing_key_and_the_version_of_its_event() -> None:
    message = order_placed().message(ORDER, headers={"tenant": "a"}, ordering_key="7")
    expected = OutboxMessage("order.placed", ORDER, headers={"tenant": "a", "event-version": 3}, ordering_key="7")
    assert message == expected


async def test_a_publisher_takes_an_event_in_place_of_a_routing_key() -> None:
    publisher = RecordingPublisher()
    await publisher.publish(order_placed(), ORDER, headers={"tenant": "a"})
    published = publisher.assert_published("order.placed", ORDER, times=1)
    assert published.message.headers == {"tenant": "a", "event-version": 3}
    assert publisher.assert_published(order_placed(), ORDER) is published
    assert publisher.of(order_placed()) == [published]


def test_a_body_of_another_model_is_refused_by_type_checkers_and_at_run_time() -> None:
    publisher = RecordingPublisher(sync=True)
    with pytest.raises(EncodingError, match=r"the body of 'order.placed' must be .*Order, not .*Invoice"):
        publisher.publish(order_placed(), Invoice(number=7))  # type: ignore[misc]
    publisher.assert_not_published()


def test_the_version_cannot_be_set_as_a_header() -> None:
    with pytest.raises(EncodingError, match="event-version"):
        order_placed().message(ORDER, headers={"event-version": 1})


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(NEW, {"event-version": 3}, id="of the newest version"),
        pytest.param(b'{"number": 7, "placed_on": "2026-03-01"}', {"event-version": "2"}, id="one version older, as text"),
        pytest.param(b'{"id": 7, "placed_on": "2026-03-01"}', {"event-version": 1}, id="two versions older"),
        pytest.param(b'{"id": 7, "placed_on": "2026-03-01"}', {}, id="without a version"),
    ],
)
def test_each_version_is_read_as_the_newest_model(body: bytes, headers: dict[str, Any]) -> None:
    assert order_placed().read(body, headers) == ORDER


def test_messages_without_a_version_have_the_default_one() -> None:
    assert order_placed(default_version=3).read(NEW, {}) == ORDER


def test_a_newer_version_is_unsupported_but_not_malformed() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"version 4 of 'order\.placed'"):
        order_placed().read(NEW, {"event-version": 4})
    assert not issubclass(UnsupportedVersionError, ValueError), "a ValueError would be dead-lettered at once"


@pytest.mark.parametrize("version", [0, -1, "", "1.0", "²", True, 1.5, [1], "9" * 5_000])
def test_a_version_that_is_no_number_is_malformed(version: object) -> None:
    with pytest.raises(MalformedMessageError, match="event-version"):
        order_placed().read(NEW, {"event-version": version})


@pytest.mark.parametrize("body", [b"", b"[1]", b"7", b"{", b"\xff", b"[" * 100_000])
def test_an_old_body_that_is_no_object_is_malformed(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|expected|EOF|recursion"):
        order_placed().read(body, {"event-version": 1})


def test_an_older_body_that_is_not_json_is_named_as_such() -> None:
    event = Event("order.placed", Order, version=2)
    event.upcast(from_=1)(lambda body: body)
    with pytest.raises(MalformedMessageError, match="version 1, is not JSON: expected ident"):
        event.read(b"not json", {"event-version": 1})


def test_a_body_that_upcasters_make_invalid_is_malformed() -> None:
    with pytest.raises(ValidationError):
        order_placed().read(b'{"id": "seven", "placed_on": "2026-03-01"}', {"event-version": 1})


def test_a_version_below_the_oldest_is_malformed() -> None:
    event = Event("order.placed", Invoice, version=2, oldest=2)
    with pytest.raises(MalformedMessageError, match="the oldest that is accepted is 2"):
        event.read(b"{}", {"event-version": 1})


# --- definitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("", Order), {}),
        (("order.*", Order), {}),
        (("#", Order), {}),
        (("order.placed", dict), {}),
        (("order.placed", ORDER), {}),
        (("order.placed", Order), {"version": 0}),
        (("order.placed", Order), {"version": 2, "oldest": 3}),
        (("order.placed", Order), {"version": 2, "default_version": 3}),
    ],
)
def test_an_invalid_event_is_refused(arguments: tuple[Any, Any], options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Event(*arguments, **options)


def test_an_upcaster_for_no_version_twice_or_async_is_refused() -> None:
    event = Event("order.placed", Order, version=3)

    async def later(body: dict[str, Any]) -> dict[str, Any]:
        return body

    with pytest.raises(ConfigurationError, match="needs no upcaster from 3"):
        event.upcast(from_=3)
    for wrong in (0, "1", None, True):
        with pytest.raises(ConfigurationError, match=f"from_ must be a whole number from 1 to .*, not {wrong!r}"):
            event.upcast(from_=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not async"):
        event.upcast(from_=1)(later)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="already has an upcaster from version 1"):
        order_placed().upcast(from_=1)


def test_a_consumer_with_a_missing_upcaster_is_refused() -> None:
    event = Event("order.placed", Invoice, version=3)
    event.upcast(from_=1)(dict)
    with pytest.raises(ConfigurationError, match="no upcaster from 2: "):

        @consume(event)
        async def handle(invoice: Invoice) -> None:
            """Never called."""


def test_a_consumer_is_bound_to_the_event_and_needs_its_model() -> None:
    event = order_placed()

    async def of_order(order: Order) -> None: ...
    async def of_model(body: BaseModel) -> None: ...
    async def of_anything(body) -> None: ...  # type: ignore[no-untyped-def]
    async def of_invoice(invoice: Invoice) -> None: ...
    async def of_mapping(body: dict[str, Any]) -> None: ...
    async def of_orders(orders: list[Order]) -> None: ...

    for fitting in (of_order, of_model, of_anything):
        assert consume(event)(fitting).binding_key == "order.placed"
    assert consume(event, batch=True)(of_orders).event is event
    for other in (of_invoice, of_mapping, of_orders):
        with pytest.raises(SignatureError, match=r"the body of 'order.placed' is .*Order"):
            consume(event)(other)
    with pytest.raises(ConfigurationError, match="binding_key must be the routing key of the event"):
        Consumer("order.*", of_order, event=event)


def test_calling_a_typed_consumer_calls_its_callback() -> None:
    @consume(order_placed())
    async def handle(order: Order) -> None:
        assert order is ORDER

    asyncio.run(handle(ORDER))
