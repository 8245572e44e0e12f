"""Batches on a real broker: one result per message, whatever happens to other messages or to the broker."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import aio_pika
import pytest

from outbox.core.message import Message
from outbox.core.outcome import DONE
from outbox.errors import BrokerUnavailableError, ConfigurationError, UrlError
from outbox.masking import Masking
from outbox.ports import CONFIRMED, UNROUTABLE, Confirmed, NotSent, Refused
from outbox.transports.rabbitmq import RabbitBroker
from tests.rabbitmq.support import EXCHANGE, MakeBroker, Recorder, bound, consuming, deliver, message, send
from tests.servers.proxy import Proxy, Towards
from tests.servers.rabbitmq import MAX_MESSAGE_SIZE, OwnRabbitMQ
from tests.support import RabbitAdmin, eventually

LARGE = 3 * 1024 * 1024


@pytest.fixture
async def mail(broker: RabbitBroker) -> str:
    """A queue that is bound with `order.*`."""
    await bound(broker, "mail")
    return "mail"


# --- what the wire carries -----------------------------------------------------------------------------------------------


async def test_a_message_carries_its_properties_and_is_persistent(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    created_at = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    sent = message(
        headers={"tenant": "acme"}, id="7", tracking_ids=("root", "7"), created_at=created_at, ordering_key="customer-1"
    )
    await deliver(broker, sent)
    [got] = await broker_admin.get(mail)
    properties = got["properties"]
    assert (got["exchange"], got["routing_key"], got["body"]) == (EXCHANGE, "order.placed", b"{}")
    assert properties["delivery_mode"] == 2
    assert properties["message_id"] == "7"
    assert properties["correlation_id"] == "root"
    assert properties["timestamp"] == int(created_at.timestamp())
    assert properties["content_type"] == "application/json"
    assert "expiration" not in properties
    properties["headers"].pop("x-delivery-count", None)  # what the queue adds
    assert properties["headers"] == {
        "tenant": "acme",
        "x-outbox-tracking-ids": '["root", "7"]',
        "x-outbox-ordering-key": "customer-1",
    }


async def test_the_root_of_the_chain_is_the_correlation_id_if_it_fits(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    # The chain stays in its header, whose length is not limited to 255 bytes.
    for root, expected in (("7", "7"), ("ł" * 127, "ł" * 127), ("ł" * 128, None), ("", None)):
        await deliver(broker, message(id="7", tracking_ids=(root, "7")))
        [got] = await broker_admin.get(mail)
        assert got["properties"].get("correlation_id") == expected


async def test_an_expiration_is_in_milliseconds_and_the_deadline_is_a_header(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    deadline = datetime(2036, 5, 4, 3, 2, 1, tzinfo=UTC)
    await deliver(broker, message(expiration=timedelta(minutes=1, milliseconds=5), expires_at=deadline))
    [got] = await broker_admin.get(mail)
    assert got["properties"]["expiration"] == "60005"
    assert got["properties"]["headers"]["x-outbox-expires-at"] == "2036-05-04T03:02:01+00:00"


async def test_an_expiration_above_the_brokers_limit_leaves_only_the_deadline(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    await deliver(broker, message(expiration=timedelta(days=50), expires_at=datetime.now(UTC) + timedelta(days=50)))
    [got] = await broker_admin.get(mail)
    assert "expiration" not in got["properties"]
    assert "x-outbox-expires-at" in got["properties"]["headers"]


async def test_a_message_for_one_queue_goes_there_directly_and_keeps_its_routing_key(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    await deliver(broker, message("invoice." + "x" * 300, target_queue=mail))
    [got] = await broker_admin.get(mail)
    assert (got["exchange"], got["routing_key"]) == ("", mail)
    assert got["properties"]["headers"]["x-outbox-routing-key"] == "invoice." + "x" * 300


# --- bad messages ---------------------------------------------------------------------------------------------------------


async def test_bad_messages_do_not_affect_others(broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str) -> None:
    bad = [
        message("order." + "x" * 300),
        message(body=b"x" * (MAX_MESSAGE_SIZE + 1)),
        message(headers={"h": "x" * 140_000}),
        message(headers={"who": object()}),
        message(headers={"x" * 300: 1}),
        message(headers={"CC": "must be a list"}),
        message(id="i" * 256),
        message(content_type="c" * 256),
    ]
    batch: list[Message] = []
    for number, culprit in enumerate(bad):
        batch += [message(body=str(number).encode()), culprit]
    batch.append(message(body=b"last"))
    results = await send(broker, *batch)
    for culprit, result in zip(batch, results, strict=True):
        assert isinstance(result, Refused if culprit in bad else Confirmed), (culprit.headers, result)
    texts = [result.failure.message for result in results if isinstance(result, Refused)]
    assert "the routing key is 306 bytes long" in texts[0]
    assert "larger than" in texts[1] or "max_message_size is 4194304" in texts[1]
    assert "frame_max" in texts[2]
    assert await _bodies(broker_admin, mail) >= {str(number).encode() for number in range(len(bad))} | {b"last"}


async def test_a_message_above_a_known_limit_costs_no_channel(broker: RabbitBroker, mail: str) -> None:
    """The broker names its limit for bodies when the first one exceeds it."""
    oversize = message(body=b"x" * (MAX_MESSAGE_SIZE + 1))
    [first] = await send(broker, oversize)
    assert isinstance(first, Refused)
    refused, confirmed = await send(broker, oversize, message())
    assert isinstance(refused, Refused)
    assert refused.failure.message == f"the body has {MAX_MESSAGE_SIZE + 1} bytes, and the broker's max_message_size is 4194304"
    assert confirmed is CONFIRMED


async def test_a_full_queue_refuses_and_others_do_not(broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str) -> None:
    await broker_admin.declare_queue("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    await broker_admin.bind(EXCHANGE, "full", "full.*")
    await deliver(broker, message("full.up"))
    await eventually(lambda: _is_refused(broker, message("full.up")))
    refused, confirmed = await send(broker, message("full.up"), message("order.placed"))
    assert isinstance(refused, Refused)
    assert confirmed is CONFIRMED


async def test_messages_with_the_same_id_are_not_confused(broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str) -> None:
    batch = [
        message("order.placed", b"1", id="same"),
        message("unbound.key", b"2", id="same"),
        message("order.placed", b"3", id="same"),
        message("order.placed", b"4", id="", tracking_ids=()),
        message("unbound.key", b"5", id="", tracking_ids=()),
    ]
    assert list(await send(broker, *batch)) == [CONFIRMED, UNROUTABLE, CONFIRMED, CONFIRMED, UNROUTABLE]
    assert await _bodies(broker_admin, mail) == {b"1", b"3", b"4"}


async def test_an_empty_batch_is_sent(broker: RabbitBroker) -> None:
    assert list(await send(broker)) == []


async def test_large_bodies_and_many_messages_arrive_complete(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    await deliver(broker, *(message(body=bytes([number]) * LARGE) for number in range(5)))
    await deliver(broker, *(message() for _ in range(5_000)))
    assert await broker_admin.depth(mail) == 5_005


async def test_concurrent_batches_do_not_mix(broker: RabbitBroker, mail: str) -> None:
    async def lane(routable: bool) -> None:
        keys = ["order.placed" if routable else "unbound.key"] * 40
        for _ in range(5):
            results = await send(broker, *(message(key) for key in keys))
            assert list(results) == [CONFIRMED if routable else UNROUTABLE] * 40

    async with asyncio.TaskGroup() as lanes:
        for number in range(24):
            lanes.create_task(lane(number % 2 == 0))


async def test_an_exchange_that_was_deleted_is_declared_again(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    await deliver(broker, message())
    await broker_admin.delete_exchange(EXCHANGE)
    [result] = await send(broker, message())
    assert isinstance(result, NotSent)
    assert list(await send(broker, message())) == [UNROUTABLE]
    assert EXCHANGE in await broker_admin.exchanges()


# --- a bad broker ---------------------------------------------------------------------------------------------------------


async def test_a_broker_that_is_away_is_said_to_be_and_the_password_is_not(make_broker: MakeBroker) -> None:
    broker = make_broker("amqp://relay:s3cret@127.0.0.1:1/%2F")
    with pytest.raises(BrokerUnavailableError, match=r"amqp://relay:\*\*\*@127\.0\.0\.1:1") as caught:
        await broker.open()
    assert "s3cret" not in str(caught.value)
    [result] = await send(broker, message())
    assert isinstance(result, NotSent)
    assert "s3cret" not in str(result.failure) + result.failure.traceback


async def test_a_wrong_password_is_named_and_not_shown(make_broker: MakeBroker, broker_url: str) -> None:
    scheme, _, rest = broker_url.partition("://")
    broker = make_broker(f"{scheme}://nowhere-known:s3cret@{rest.partition('@')[2]}")
    with pytest.raises(BrokerUnavailableError, match="refused the user or the password") as caught:
        await broker.open()
    assert "s3cret" not in str(caught.value)
    assert "ACCESS_REFUSED" in Masking().masked_text(str(caught.value))  # as it is logged


async def test_a_missing_confirm_times_out_and_matches_no_later_message(
    make_broker: MakeBroker, broker: RabbitBroker, broker_url: str, mail: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    await deliver(through, message())
    proxy.swallow(Towards.CLIENT)
    began = time.monotonic()
    results = await send(through, message(), message(), timeout=timedelta(seconds=1))
    assert time.monotonic() - began >= 0.9
    assert [type(result) for result in results] == [NotSent, NotSent]
    proxy.resume()
    proxy.cut()
    await eventually(lambda: _is_confirmed(through))


async def test_late_confirms_are_not_taken_for_those_of_the_next_batch(
    make_broker: MakeBroker, broker_url: str, broker: RabbitBroker, mail: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    await deliver(through, message())
    proxy.pause(Towards.CLIENT)
    results = await send(through, message(), message(), message(), timeout=timedelta(seconds=0.5))
    assert all(isinstance(result, NotSent) for result in results)
    proxy.resume()
    assert list(await send(through, message("unbound.key"), message(), message("unbound.key"))) == [
        UNROUTABLE,
        CONFIRMED,
        UNROUTABLE,
    ]


async def test_a_cancelled_send_does_not_affect_the_next(
    make_broker: MakeBroker, broker_url: str, broker_admin: RabbitAdmin, mail: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    await deliver(through, message())
    proxy.pause(Towards.CLIENT)
    sending = asyncio.create_task(send(through, message(), message()))
    await eventually(lambda: depth_is(broker_admin, mail, 3))  # the batch has arrived, and its confirms are held back
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    proxy.resume()
    assert list(await send(through, message("unbound.key"), message())) == [UNROUTABLE, CONFIRMED]


async def test_a_connection_lost_during_a_batch_is_reopened_and_the_rest_is_sent(
    make_broker: MakeBroker, broker_url: str, broker_admin: RabbitAdmin, mail: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    await deliver(through, message())
    proxy.pause(Towards.CLIENT)
    batch = [message() for _ in range(100)]
    sending = asyncio.create_task(send(through, *batch))
    await eventually(lambda: depth_is(broker_admin, mail, 101))  # the batch has arrived, and its confirms are held back
    proxy.cut()
    proxy.resume()
    assert list(await sending) == [CONFIRMED] * 100


async def depth_is(admin: RabbitAdmin, queue: str, count: int) -> bool:
    return await admin.depth(queue) == count


async def _is_deeper(admin: RabbitAdmin, count: int) -> bool:
    return await admin.depth("mail") > count  # which is inexact at first


async def test_connections_that_an_operator_closes_are_no_message_s_fault(
    broker: RabbitBroker, broker_admin: RabbitAdmin, mail: str
) -> None:
    async def one_after_another() -> None:
        for _ in range(200):
            results = await send(broker, *(message() for _ in range(20)))
            assert not [result for result in results if isinstance(result, Refused)]

    await eventually(broker_admin.connections)
    sending = asyncio.create_task(one_after_another())
    while not sending.done():
        await broker_admin.close_connections()
    await sending


async def test_a_broker_that_is_killed_leaves_what_was_confirmed_confirmed_and_the_rest_unsent(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ
) -> None:
    broker = make_broker(own_rabbitmq.url)
    await bound(broker)
    await deliver(broker, message())
    confirmed = 0

    async def until_not_sent() -> NotSent:
        nonlocal confirmed
        while True:
            for result in await send(broker, *(message() for _ in range(200))):
                assert isinstance(result, Confirmed | NotSent)
                if isinstance(result, NotSent):
                    return result
                confirmed += 1

    sending = asyncio.create_task(until_not_sent())
    await eventually(lambda: confirmed > 1_000)
    own_rabbitmq.kill()
    await asyncio.wait_for(sending, 30)
    with pytest.raises(BrokerUnavailableError):
        await broker.open()
    own_rabbitmq.start()
    await eventually(lambda: _is_confirmed(broker))
    await eventually(lambda: _is_deeper(own_rabbitmq.admin, confirmed))


async def test_a_broker_that_is_frozen_costs_no_more_than_the_timeout_and_is_used_again(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ
) -> None:
    broker = make_broker(own_rabbitmq.url, connect_timeout=timedelta(minutes=5))
    await bound(broker)
    await deliver(broker, message())
    own_rabbitmq.freeze()
    for _ in range(4):
        async with asyncio.timeout(30):
            [result] = await send(broker, message(), timeout=timedelta(seconds=1))
        assert isinstance(result, NotSent)
    own_rabbitmq.thaw()
    await eventually(lambda: _is_confirmed(broker))


# --- connections of others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connect", [aio_pika.connect, aio_pika.connect_robust])
async def test_a_given_connection_is_used_and_left_open(
    make_broker: MakeBroker, broker_url: str, broker: RabbitBroker, mail: str, connect: Callable[..., object]
) -> None:
    connection = await connect(broker_url)  # type: ignore[misc]
    given = make_broker(connection=connection)
    async with consuming(given) as inbox:
        await deliver(given, message(body=b"through theirs"))
        assert (await inbox.next()).message.body == b"through theirs"
    await given.close()
    assert not connection.is_closed
    async with connection.channel() as channel:
        await channel.declare_queue("theirs", exclusive=True)
    await connection.close()
    [result] = await send(given, message())
    assert isinstance(result, NotSent)


async def test_a_given_robust_connection_is_used_again_when_it_has_come_back(
    make_broker: MakeBroker, broker_url: str, broker: RabbitBroker, mail: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    async with await aio_pika.connect_robust(proxy.url, reconnect_interval=0.1) as connection:
        given = make_broker(connection=connection)
        async with consuming(given, "stock") as inbox:
            await deliver(given, message())
            await (await inbox.next()).settle(DONE)
            proxy.cut()
            await eventually(lambda: _is_confirmed(given))
            await inbox.next()


def test_one_of_url_and_connection_must_be_given() -> None:
    with pytest.raises(ConfigurationError):
        RabbitBroker(exchange_name=EXCHANGE, observer=Recorder())


@pytest.mark.parametrize(
    "url",
    [
        "http://relay:s3cret@localhost",
        "amqp://relay:s3cret@:5672/",
        "amqp://relay:s3cret@localhost:99999/",
        "amqp://relay:s3c/ret@localhost/",
    ],
)
def test_an_invalid_url_fails_early_and_without_its_password(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        RabbitBroker(url, exchange_name=EXCHANGE, observer=Recorder())
    assert "s3c" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


async def _bodies(admin: RabbitAdmin, queue: str) -> set[bytes]:
    return {got["body"] for got in await admin.get(queue, count=1_000)}


async def _is_confirmed(broker: RabbitBroker) -> bool:
    return list(await send(broker, message())) == [CONFIRMED]


async def _is_refused(broker: RabbitBroker, refused: Message) -> bool:
    [result] = await send(broker, refused)
    return isinstance(result, Refused)
