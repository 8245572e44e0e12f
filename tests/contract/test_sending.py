"""What every transport promises of sending, also one that cannot be consumed from."""

from datetime import timedelta

import pytest

from outbox.ports import CONFIRMED, UNROUTABLE
from tests.contract.routes import Route
from tests.contract.support import TIMEOUT, message


async def test_a_sent_message_arrives_with_all_that_it_carries(route: Route) -> None:
    sent = message(
        "order.placed",
        b'{"id": 7}',
        headers={"tenant": "acme"},
        ordering_key="order 7",
        hlc=1_780_000_000_000_001,
        requeue_count=2,
    )
    await route.transport.open()
    assert list(await route.transport.send([sent], timeout=TIMEOUT)) == [CONFIRMED]
    [arrived] = await route.arrived(1)
    assert (arrived.id, arrived.routing_key, arrived.body) == (sent.id, "order.placed", b'{"id": 7}')
    assert (arrived.content_type, arrived.tracking_ids) == ("application/json", sent.tracking_ids)
    assert (arrived.ordering_key, arrived.hlc, arrived.requeue_count) == ("order 7", 1_780_000_000_000_001, 2)
    assert dict(arrived.headers) == {"tenant": "acme"}
    assert abs(arrived.created_at - sent.created_at) <= timedelta(seconds=1)


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe", "żółw".encode(), b"x" * 300_000])
async def test_any_body_arrives_byte_for_byte(route: Route, body: bytes) -> None:
    await route.transport.open()
    assert list(await route.transport.send([message("order.placed", body)], timeout=TIMEOUT)) == [CONFIRMED]
    assert [arrived.body for arrived in await route.arrived(1)] == [body]


async def test_a_message_without_a_route_is_unroutable_and_others_are_not(route: Route) -> None:
    await route.transport.open()
    key = "order 7"  # so that they stay in order on every transport
    batch = [
        message("unbound.key"),
        message("order.placed", b"1", ordering_key=key),
        message("nor.here"),
        message("order.placed", b"2", ordering_key=key),
    ]
    assert list(await route.transport.send(batch, timeout=TIMEOUT)) == [UNROUTABLE, CONFIRMED, UNROUTABLE, CONFIRMED]
    assert [arrived.body for arrived in await route.arrived(2)] == [b"1", b"2"]


async def test_a_message_for_a_missing_queue_is_unroutable(route: Route) -> None:
    await route.transport.open()
    batch = [message("order.placed", target_queue="gone"), message("order.placed", b"1")]
    assert list(await route.transport.send(batch, timeout=TIMEOUT)) == [UNROUTABLE, CONFIRMED]
    assert [arrived.body for arrived in await route.arrived(1)] == [b"1"]


async def test_an_empty_batch_has_no_results(route: Route) -> None:
    await route.transport.open()
    assert list(await route.transport.send([], timeout=TIMEOUT)) == []


async def test_a_closed_transport_can_be_closed_and_opened_again(route: Route) -> None:
    for _ in range(2):
        await route.transport.open()
        await route.transport.open()
        await route.transport.close()
        await route.transport.close()
