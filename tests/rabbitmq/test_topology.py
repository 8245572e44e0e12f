"""What is declared, what is used as it is, and what works without the permission to declare anything."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from outbox.codec import EXCEPTION_TYPE
from outbox.duration import as_delays
from outbox.errors import TopologyError
from outbox.events import Advice, DependencyRestored
from outbox.outcome import DONE, RETURNED, Cause, Dead, Retry
from outbox.ports import UNROUTABLE
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.inquiry import Inquiry
from outbox.transports.rabbitmq.topology import Topology, delay_resource, rounded_delay
from tests.rabbitmq.conftest import MakeBroker
from tests.rabbitmq.support import EXCHANGE, FAILURE, Recorder, bound, consuming, deliver, message, send
from tests.support import RabbitAdmin, eventually

SAFE = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
RESTRICTED = {"configure": "^$", "write": rf"^({EXCHANGE}|{EXCHANGE}\.delay_.*)$", "read": ".*"}


async def test_a_relay_declares_its_exchange_and_nothing_else(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    await broker.open()
    declared = await _declared_exchanges(broker_admin)
    assert declared == {EXCHANGE: "topic"}
    assert await broker_admin.queues() == {}


async def test_a_consumer_declares_its_queue_its_delays_and_its_dead_letters(
    broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    async with consuming(broker, "mail", "order.*", retry_delays=as_delays(["0", "1m", "1s500ms"])):
        assert await _declared_exchanges(broker_admin) == {
            "shop": "topic",
            "shop.dlx": "direct",
            "shop.delay_0s": "fanout",
            "shop.delay_60s": "fanout",
            "shop.delay_1500ms": "fanout",
        }
        queues = await broker_admin.queues()
        assert {name: _arguments(queue) for name, queue in queues.items()} == {
            "mail": {"x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": "mail", **SAFE},
            "mail.dlq": {},
            "shop.delay_0s": {"x-message-ttl": 0, "x-dead-letter-exchange": "", **SAFE},
            "shop.delay_60s": {"x-message-ttl": 60_000, "x-dead-letter-exchange": "", **SAFE},
            "shop.delay_1500ms": {"x-message-ttl": 1_500, "x-dead-letter-exchange": "", **SAFE},
        }
        assert all(queue["durable"] and queue["arguments"]["x-queue-type"] == "quorum" for queue in queues.values())
        bindings = {(b["source"], b["destination"], b["routing_key"]) for b in await broker_admin.bindings()}
        assert bindings == {
            ("shop", "mail", "order.*"),
            ("shop.dlx", "mail.dlq", "mail"),
            ("shop.delay_0s", "shop.delay_0s", ""),
            ("shop.delay_60s", "shop.delay_60s", ""),
            ("shop.delay_1500ms", "shop.delay_1500ms", ""),
        }


async def test_a_minute_and_sixty_seconds_are_one_delay(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    await bound(broker)
    async with (
        consuming(broker, "mail", retry_delays=as_delays(["1m"])),
        consuming(broker, "stock", retry_delays=as_delays([60])),
    ):
        delays = [name for name in await broker_admin.queues() if ".delay_" in name]
        assert delays == ["shop.delay_60s"]


async def test_what_is_there_is_used_without_a_word(make_broker: MakeBroker, broker_url: str, broker: RabbitBroker) -> None:
    async with consuming(broker, retry_delays=as_delays(["1s"])):
        pass
    recorder = Recorder()
    again = make_broker(broker_url, observer=recorder)
    async with consuming(again, retry_delays=as_delays(["1s"])):
        await deliver(again, message())
    assert recorder.events == []


async def test_a_queue_with_other_arguments_is_used_as_it_is_and_named_once(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    await broker_admin.declare_queue("mail", quorum=False, arguments={"x-max-priority": 5})
    for _ in range(2):
        async with consuming(broker, "mail", retry_delays=as_delays(["0"])) as inbox:
            await deliver(broker, message())
            await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
            again = await inbox.next()
            assert again.attempt == 2
            await again.settle(DONE)
    [advice] = recorder.of(Advice)
    assert "queue 'mail' exists with other properties" in advice.text
    assert "inequivalent arg" in advice.text
    assert "rabbitmqctl set_policy --apply-to queues outbox-mail '^mail$'" in advice.text
    assert '"dead-letter-exchange": "shop.dlx"' in advice.text


async def test_an_exchange_of_another_kind_is_named(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    await broker_admin.declare_exchange(EXCHANGE, "direct")
    await broker.open()
    [advice] = recorder.of(Advice)
    assert "Outbox expects a durable topic exchange" in advice.text


# --- restricted users -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def restricted_url(broker_admin: RabbitAdmin) -> str:
    """A user that may configure nothing, and write to the exchange and its delays only."""
    url = await broker_admin.create_user("restricted", "s3cret")
    await broker_admin.permit("restricted", **RESTRICTED)
    return url


async def test_a_restricted_user_works_when_everything_is_provisioned(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin, restricted_url: str
) -> None:
    async with consuming(broker, retry_delays=as_delays(["0", "1s"])):
        pass
    recorder = Recorder()
    restricted = make_broker(restricted_url, observer=recorder)
    async with consuming(restricted, retry_delays=as_delays(["0", "1s"])) as inbox:
        sent = message(headers={"tenant": "acme"})
        await deliver(restricted, sent)
        for attempt in (1, 2, 3):
            delivery = await inbox.next()
            assert delivery.attempt == attempt
            await delivery.settle(Retry(timedelta(seconds=1 if attempt == 1 else 0), FAILURE))
        delivery = await inbox.next()
        assert not await delivery.isolate()
        delivery = await inbox.next()
        assert await delivery.isolate()
        assert (delivery.message.id, delivery.message.routing_key) == (sent.id, "order.placed")
        assert delivery.attempt == 4
        await delivery.settle(RETURNED)
        delivery = await inbox.next()
        assert not delivery.blamed
        await delivery.settle(Dead(Cause.EXHAUSTED, FAILURE))
        await eventually(lambda: _is(broker.count_dead_letters("mail"), 1))
        assert await restricted.count_dead_letters("mail") == 1
        assert list(await send(restricted, message("nobody.cares"))) == [UNROUTABLE]
        await deliver(restricted, message(target_queue="mail", body=b"straight"))
        assert (await inbox.next()).message.body == b"straight"
    assert recorder.events == []


async def test_rights_that_are_taken_away_later_are_noticed(make_broker: MakeBroker, broker_admin: RabbitAdmin) -> None:
    url = await broker_admin.create_user("demoted", "s3cret")
    await broker_admin.permit("demoted")
    recorder = Recorder()
    demoted = make_broker(url, observer=recorder)
    async with consuming(demoted, retry_delays=as_delays(["0"])) as inbox:
        await broker_admin.permit("demoted", **RESTRICTED)
        await eventually(broker_admin.close_connections)
        await eventually(lambda: recorder.of(DependencyRestored), timeout=20)
        await deliver(demoted, message())
        await asyncio.wait_for((await inbox.next()).settle(Dead(Cause.EXHAUSTED, FAILURE)), 10)
        await eventually(lambda: _is(demoted.count_dead_letters("mail"), 1))


async def test_a_user_with_all_rights_leaves_the_error_with_the_dead_letter(
    broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    async with consuming(broker) as inbox:
        await deliver(broker, message())
        await (await inbox.next()).settle(Dead(Cause.REJECTED, FAILURE))
        [dead] = await broker_admin.get("mail.dlq")
        assert dead["properties"]["headers"][EXCEPTION_TYPE] == "shop.PaymentError"


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("shop", "exchange 'shop'"),
        ("mail", "queue 'mail'"),
        ("mail.dlq", "queue 'mail.dlq'"),
        ("shop.dlx", "exchange 'shop.dlx'"),
        ("shop.delay_1s", "queue 'shop.delay_1s'"),
    ],
)
async def test_what_is_missing_and_may_not_be_declared_is_named(
    make_broker: MakeBroker,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    restricted_url: str,
    missing: str,
    named: str,
) -> None:
    async with consuming(broker, retry_delays=as_delays(["0", "1s"])):
        pass
    if named.startswith("queue"):
        await broker_admin.delete_queue(missing)
    else:
        await broker_admin.delete_exchange(missing)
    restricted = make_broker(restricted_url)
    with pytest.raises(TopologyError, match=f"the {named} is missing, and this RabbitMQ user may not declare it"):
        async with consuming(restricted, retry_delays=as_delays(["0", "1s"])):
            pass


async def test_a_restricted_relay_is_told_what_is_missing(make_broker: MakeBroker, restricted_url: str) -> None:
    with pytest.raises(TopologyError, match="the exchange 'shop' is missing"):
        await make_broker(restricted_url).open()


async def test_a_delay_that_nobody_provisioned_is_replaced_by_a_longer_one(
    make_broker: MakeBroker, broker: RabbitBroker, restricted_url: str
) -> None:
    async with consuming(broker, retry_delays=as_delays(["0", "1s", "1m"])):
        pass
    recorder = Recorder()
    restricted = make_broker(restricted_url, observer=recorder)
    async with consuming(restricted, retry_delays=as_delays(["0", "1s", "1m"])) as inbox:
        await deliver(restricted, message())
        await (await inbox.next()).settle(Retry(timedelta(milliseconds=300), FAILURE))
        assert (await inbox.next()).attempt == 2
    [advice] = recorder.of(Advice)
    assert "exchange 'shop.delay_300ms' is missing" in advice.text
    assert "'shop.delay_1s' instead" in advice.text


async def test_a_user_that_may_not_write_to_the_exchange_is_told_so(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await bound(broker)
    url = await broker_admin.create_user("reader", "s3cret")
    await broker_admin.permit("reader", configure="^$", write="^$", read=".*")
    [result] = await send(make_broker(url), message())
    assert "a permission is missing" in str(result)
    assert "exchange 'shop'" in str(result)


async def test_a_key_that_this_user_may_not_write_with_is_refused_alone(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await bound(broker)
    url = await broker_admin.create_user("orders", "s3cret")
    await broker_admin.permit("orders")
    await broker_admin._put(
        f"topic-permissions/{broker_admin._host}/orders", {"exchange": EXCHANGE, "write": r"^order\.placed$", "read": ".*"}
    )
    results = await send(make_broker(url), message(), message("order.stolen"), message())
    assert [type(result).__name__ for result in results] == ["Confirmed", "Refused", "Confirmed"]


# --- names and versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delay", "name"),
    [
        (timedelta(0), "shop.delay_0s"),
        (timedelta(seconds=1), "shop.delay_1s"),
        (timedelta(minutes=5), "shop.delay_300s"),
        (timedelta(milliseconds=500), "shop.delay_500ms"),
        (timedelta(seconds=90, milliseconds=1), "shop.delay_90001ms"),
        (timedelta(days=365), "shop.delay_4294967294ms"),
    ],
)
def test_a_delay_is_named_after_its_length(delay: timedelta, name: str) -> None:
    assert delay_resource("shop", delay) == name


@pytest.mark.parametrize(
    ("milliseconds", "rounded"),
    [(0, 0), (7, 7), (99, 99), (101, 110), (250, 250), (1234, 1300), (61_000, 61_000), (61_001, 62_000)],
)
def test_a_delay_that_nobody_announced_is_rounded_up(milliseconds: float, rounded: int) -> None:
    assert rounded_delay(timedelta(milliseconds=milliseconds)) == timedelta(milliseconds=rounded)


def test_a_delay_longer_than_the_broker_can_count_is_the_longest() -> None:
    assert delay_resource("shop", rounded_delay(timedelta.max)) == "shop.delay_4294967294ms"


@pytest.mark.parametrize(
    ("version", "limit"), [("3.10.8", None), ("3.13.7", None), ("4.0.5", -1), ("4.2.0-rc.1", -1), (None, None)]
)
async def test_a_delivery_limit_is_switched_off_where_there_is_one(version: str | None, limit: int | None) -> None:
    asked: dict[str, Any] = {}

    class Recording(Inquiry):
        async def ask(self, question: Any) -> Any:
            await question(SimpleNamespace(exchange_declare=_nothing, queue_bind=_nothing, queue_declare=declare))

    async def declare(name: str, *, arguments: dict[str, Any] | None = None, **_: object) -> None:
        asked[name] = arguments

    inquiry = Recording(SimpleNamespace(server_properties={"version": version}))  # type: ignore[arg-type]
    await Topology(lambda _: None).ensure_dead_letters(inquiry, "shop", "mail")
    assert asked["mail.dlq"].get("x-delivery-limit") == limit


async def _nothing(*_: object, **__: object) -> None:
    await asyncio.sleep(0)


async def _declared_exchanges(admin: RabbitAdmin) -> dict[str, str]:
    exchanges = await admin.exchanges()
    assert all(exchange["durable"] for name, exchange in exchanges.items() if name.startswith(EXCHANGE))
    return {name: exchange["type"] for name, exchange in exchanges.items() if name and not name.startswith("amq.")}


def _arguments(queue: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in queue["arguments"].items() if name != "x-queue-type"}


async def _is(answer: Any, expected: object) -> bool:
    return bool(await answer == expected)
