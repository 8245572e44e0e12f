"""Declared and existing resources, and users without the permission to declare any."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import aio_pika
import pytest
from aiormq.channel import Channel

from outbox.core.codec import EXCEPTION_TYPE
from outbox.core.duration import as_delays
from outbox.core.events import Advice, DependencyRestored
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Retry
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import CONFIRMED, UNROUTABLE
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq import broker as consuming_module
from outbox.transports.rabbitmq import settlement as settling
from outbox.transports.rabbitmq import topology as topology_module
from outbox.transports.rabbitmq.broker import RunningSubscription
from outbox.transports.rabbitmq.connection import is_blocked
from outbox.transports.rabbitmq.topology import Exchange, Inquiry, Queue, Topology, delay_resource, inquiry_on, rounded_delay
from tests.rabbitmq.alarms import memory_alarm
from tests.rabbitmq.support import EXCHANGE, FAILURE, MakeBroker, Recorder, bound, consuming, deliver, message, send
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import RabbitAdmin, eventually

SAFE = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
RESTRICTED = {"configure": "^$", "write": rf"^({EXCHANGE}|{EXCHANGE}\.dlx|{EXCHANGE}\.delay_.*)$", "read": ".*"}
NO_DEAD_LETTERS = RESTRICTED | {"write": rf"^({EXCHANGE}|{EXCHANGE}\.delay_.*|.*\.dlq)$"}


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
        # From 4.0 on a queue has a limit unless it is configured to have none.
        unlimited = {"x-delivery-limit": -1} if await broker_admin.version() >= (4, 0) else {}
        assert {name: _arguments(queue) for name, queue in queues.items()} == {
            "mail": {"x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": "mail", **SAFE, **unlimited},
            "mail.dlq": unlimited,
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


async def test_existing_resources_are_used_silently(make_broker: MakeBroker, broker_url: str, broker: RabbitBroker) -> None:
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
    assert "queue 'mail' exists with properties other than those" in advice.text
    assert "inequivalent arg" in advice.text
    assert "rabbitmqctl set_policy --apply-to queues outbox-mail '^mail$'" in advice.text
    assert '"dead-letter-exchange": "shop.dlx"' in advice.text


async def test_queues_from_before_an_upgrade_to_rabbitmq_4_are_named_with_the_policy_that_takes_their_limit_away(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    ours = {"x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": "mail", **SAFE}
    await broker_admin.declare_queue("mail", arguments=ours)
    await broker_admin.declare_queue("mail.dlq")
    async with consuming(broker, "mail"):
        pass
    advised = sorted(advice.text for advice in recorder.of(Advice))
    if await broker_admin.version() < (4, 0):
        assert advised == []
        return
    letters, mail = advised[1], advised[0]
    for text, name in ((mail, "mail"), (letters, "mail.dlq")):
        assert f"set_policy --apply-to queues outbox-{name} '^{name}$'" in text
        assert '"delivery-limit": -1' in text


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
    """A user that may configure nothing, and write only to the exchange, its dead letters and its delays."""
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
        assert await restricted.count_dead_letters("mail") == 1
        assert list(await send(restricted, message("unbound.key"))) == [UNROUTABLE]
        await deliver(restricted, message(target_queue="mail", body=b"straight"))
        assert (await inbox.next()).message.body == b"straight"
    assert recorder.events == []


@pytest.fixture
async def demoted_url(broker_admin: RabbitAdmin) -> str:
    """A user with all permissions, some of which a test revokes."""
    url = await broker_admin.create_user("demoted", "s3cret")
    await broker_admin.permit("demoted")
    return url


async def test_permissions_that_are_revoked_later_are_noticed(
    make_broker: MakeBroker, broker_admin: RabbitAdmin, demoted_url: str
) -> None:
    recorder = Recorder()
    demoted = make_broker(demoted_url, observer=recorder)
    async with consuming(demoted, retry_delays=as_delays(["0"])) as inbox:
        await broker_admin.permit("demoted", **RESTRICTED)
        await eventually(lambda: broker_admin.close_connections(user="demoted"))
        await eventually(lambda: recorder.of(DependencyRestored))
        await deliver(demoted, message())
        await asyncio.wait_for((await inbox.next()).settle(Dead(Cause.EXHAUSTED, FAILURE)), 30)
        await eventually(lambda: _is(demoted.count_dead_letters("mail"), 1))


# --- dead letters that could be lost --------------------------------------------------------------------------------------


async def _provisioned(broker: RabbitBroker, admin: RabbitAdmin, arguments: dict[str, Any] | None) -> None:
    """Declares everything for a consumer of `mail`. With `arguments`, its queue existed before with these."""
    async with consuming(broker, retry_delays=as_delays(["0"])):
        pass
    if arguments is not None:
        await admin.delete_queue("mail")
        await admin.declare_queue("mail", quorum=False, arguments=arguments)
        await admin.bind(EXCHANGE, "mail", "order.*")


@pytest.mark.parametrize("configure", ["^$", ".*"])
@pytest.mark.parametrize("arguments", [{}, {"x-dead-letter-exchange": "elsewhere"}], ids=["none", "elsewhere"])
async def test_a_worker_whose_dead_letters_could_be_lost_refuses_to_start(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin, configure: str, arguments: dict[str, Any]
) -> None:
    await _provisioned(broker, broker_admin, arguments)
    url = await broker_admin.create_user("restricted", "s3cret")
    await broker_admin.permit("restricted", **NO_DEAD_LETTERS | {"configure": configure})
    with pytest.raises(TopologyError, match=r"may not write to exchange 'shop\.dlx'.*x-dead-letter-exchange.*Grant"):
        async with consuming(make_broker(url), retry_delays=as_delays(["0"])):
            pass


async def test_a_queue_whose_arguments_cannot_be_read_is_treated_as_one_without(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await _provisioned(broker, broker_admin, None)
    url = await broker_admin.create_user("restricted", "s3cret")
    await broker_admin.permit("restricted", **NO_DEAD_LETTERS)
    with pytest.raises(TopologyError, match="dead letters of queue 'mail' could be lost"):
        async with consuming(make_broker(url), retry_delays=as_delays(["0"])):
            pass


async def test_a_declared_queue_dead_letters_what_is_rejected(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await _provisioned(broker, broker_admin, None)
    url = await broker_admin.create_user("restricted", "s3cret")
    await broker_admin.permit("restricted", **NO_DEAD_LETTERS | {"configure": ".*"})
    restricted = make_broker(url)
    async with consuming(restricted, retry_delays=as_delays(["0"])) as inbox:
        await deliver(restricted, message())
        await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, FAILURE))
        await eventually(lambda: _is(restricted.count_dead_letters("mail"), 1))


async def test_a_dead_letter_is_kept_while_it_may_not_be_published(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin, demoted_url: str
) -> None:
    await _provisioned(broker, broker_admin, {})
    demoted = make_broker(demoted_url)
    async with consuming(demoted, retry_delays=as_delays(["0"])) as inbox:
        await deliver(demoted, message())
        delivery = await inbox.next()
        await broker_admin.permit("demoted", **NO_DEAD_LETTERS)
        demoted._pipeline.close()  # the broker remembers for a minute what a channel was allowed to do
        for _ in range(3):
            with pytest.raises(BrokerUnavailableError, match=r"may not write to exchange 'shop\.dlx'; the message is kept"):
                await delivery.settle(Dead(Cause.EXHAUSTED, FAILURE))
        await broker_admin.permit("demoted")

        async def settled() -> bool:
            with suppress(BrokerUnavailableError):
                await delivery.settle(Dead(Cause.EXHAUSTED, FAILURE))
                return True
            return False

        await eventually(settled)
    [dead] = await broker_admin.get("mail.dlq")
    assert dead["properties"]["headers"][EXCEPTION_TYPE] == "shop.PaymentError"
    assert await broker_admin.depth("mail") == 0


async def test_a_queue_is_not_consumed_while_its_dead_letters_could_be_lost(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin, demoted_url: str
) -> None:
    await _provisioned(broker, broker_admin, {})
    recorder = Recorder()
    demoted = make_broker(demoted_url, observer=recorder)
    async with consuming(demoted, retry_delays=as_delays(["0"])) as inbox:
        await broker_admin.permit("demoted", **NO_DEAD_LETTERS)
        await eventually(lambda: broker_admin.close_connections(user="demoted"))
        await eventually(lambda: _advised(recorder, "dead letters of queue 'mail' could be lost"))
        await broker_admin.publish("", "mail", b"kept")
        await broker_admin.permit("demoted")
        assert (await inbox.next(60)).arrival.body == b"kept"


async def test_a_dead_letter_is_kept_while_its_queue_is_missing_and_may_not_be_declared(
    make_broker: MakeBroker,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    restricted_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "PATIENCE", timedelta(seconds=1))
    await _provisioned(broker, broker_admin, {})
    async with consuming(make_broker(restricted_url), retry_delays=as_delays(["0"])) as inbox:
        await deliver(broker, message())
        delivery = await inbox.next()
        await broker_admin.delete_queue("mail.dlq")
        with pytest.raises(BrokerUnavailableError, match="no queue is bound"):
            await delivery.settle(Dead(Cause.EXHAUSTED, FAILURE))
        await broker_admin.declare_queue("mail.dlq")
        await broker_admin.bind("shop.dlx", "mail.dlq", "mail")
        monkeypatch.setattr(settling, "PATIENCE", timedelta(seconds=30))
        await delivery.settle(Dead(Cause.EXHAUSTED, FAILURE))
    assert await broker_admin.depth("mail.dlq") == 1
    assert await broker_admin.depth("mail") == 0


async def test_a_user_with_all_permissions_records_the_error_with_the_dead_letter(
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


async def test_a_restricted_relay_reports_what_is_missing(make_broker: MakeBroker, restricted_url: str) -> None:
    with pytest.raises(TopologyError, match="the exchange 'shop' is missing"):
        await make_broker(restricted_url).open()


async def test_a_delay_that_is_not_provisioned_is_replaced_by_a_longer_one(
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


async def test_a_user_that_may_not_write_to_the_exchange_gets_an_error(
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


# --- what is deleted at run time ------------------------------------------------------------------------------------------


@pytest.fixture
def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming_module, "CHECK_EVERY", timedelta(milliseconds=500))


@pytest.fixture
def checks(checked_often: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets an entry for each finished check."""
    ended: list[str] = []
    check = RunningSubscription._check

    async def counted(subscription: RunningSubscription) -> None:
        await check(subscription)
        ended.append("check")

    monkeypatch.setattr(RunningSubscription, "_check", counted)
    return ended


@pytest.mark.usefixtures("checked_often")
async def test_an_unexpected_error_of_a_check_ends_the_subscription_instead_of_leaving_it_silent(
    broker: RabbitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: RunningSubscription) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RunningSubscription, "_check", fail)
    limit = asyncio.timeout(30)
    with pytest.raises(ZeroDivisionError):
        async with limit, consuming(broker, "mail", "order.*"):
            await asyncio.Event().wait()
    assert not limit.expired()


async def _more(checks: list[str], count: int) -> None:
    seen = len(checks)
    await eventually(lambda: len(checks) >= seen + count, timeout=60)


async def _bound_again(admin: RabbitAdmin, *expected: tuple[str, str, str]) -> None:
    async def bound_again() -> bool:
        bindings = {(b["source"], b["destination"], b["routing_key"]) for b in await admin.bindings()}
        return bindings >= set(expected)

    await eventually(bound_again)


@pytest.mark.usefixtures("checked_often")
async def test_a_binding_that_is_deleted_at_run_time_is_created_again(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker) as inbox:
        await broker_admin.unbind(EXCHANGE, "mail", "order.*")
        await broker_admin.unbind("shop.dlx", "mail.dlq", "mail")
        await _bound_again(broker_admin, (EXCHANGE, "mail", "order.*"), ("shop.dlx", "mail.dlq", "mail"))
        await deliver(broker, message())
        await (await inbox.next()).settle(DONE)


@pytest.mark.usefixtures("checked_often")
async def test_exchanges_that_are_deleted_at_run_time_are_declared_again_and_reported(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    async with consuming(broker, retry_delays=as_delays(["0"])) as inbox:
        for exchange in (EXCHANGE, "shop.dlx", "shop.delay_0s"):
            await broker_admin.delete_exchange(exchange)
        await _bound_again(
            broker_admin,
            (EXCHANGE, "mail", "order.*"),
            ("shop.dlx", "mail.dlq", "mail"),
            ("shop.delay_0s", "shop.delay_0s", ""),
        )
        await deliver(broker, message())
        await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
        await (await inbox.next()).settle(DONE)
    assert _advised(recorder, "the exchange 'shop' had been deleted, and was declared again")


@pytest.mark.usefixtures("checked_often")
async def test_each_deletion_is_reported_once_for_any_number_of_consumers(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    async with consuming(broker, "mail"), consuming(broker, "stock"):
        for times in (1, 2):
            await broker_admin.delete_exchange(EXCHANGE)
            await _bound_again(broker_admin, (EXCHANGE, "mail", "order.*"), (EXCHANGE, "stock", "order.*"))
            assert [advice.text for advice in recorder.of(Advice)] == [
                "the exchange 'shop' had been deleted, and was declared again"
            ] * times
        await broker_admin.delete_exchange("shop.dlx")
        async with inquiry_on(broker._publishing) as one, inquiry_on(broker._publishing) as other:
            await asyncio.gather(*(broker._topology.ensure_dead_letters(each, EXCHANGE, "mail") for each in (one, other)))
        assert len([advice for advice in recorder.of(Advice) if "'shop.dlx'" in advice.text]) == 1


async def test_a_deletion_is_reported_once_though_one_task_learns_of_it_after_another_has_declared_it(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists, is_missing, may_go_on = topology_module.exists, asyncio.Event(), asyncio.Event()
    async with inquiry_on(broker._publishing) as one, inquiry_on(broker._publishing) as late:

        async def learned_late(inquiry: Inquiry, resource: Exchange | Queue) -> bool:
            found = await exists(inquiry, resource)
            if inquiry is late:
                is_missing.set()
                await may_go_on.wait()
            return found

        monkeypatch.setattr(topology_module, "exists", learned_late)
        await broker._topology.ensure_exchange(one, EXCHANGE)
        await broker_admin.delete_exchange(EXCHANGE)
        learning = asyncio.create_task(broker._topology.ensure_exchange(late, EXCHANGE))
        await is_missing.wait()
        await broker._topology.ensure_exchange(one, EXCHANGE)
        may_go_on.set()
        await learning
    assert [advice.text for advice in recorder.of(Advice)] == ["the exchange 'shop' had been deleted, and was declared again"]


async def test_a_first_declaration_is_not_reported_as_a_deletion(broker: RabbitBroker, recorder: Recorder) -> None:
    """Also the exchange and queue of a delay, which have the same name, and resources that two consumers declare at once."""

    async def consume(queue: str) -> None:
        async with consuming(broker, queue, retry_delays=as_delays(["0", "1s"])):
            pass

    await asyncio.gather(consume("mail"), consume("stock"))
    assert recorder.of(Advice) == []


async def test_checks_do_not_repeat_refused_bindings(
    make_broker: MakeBroker,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    restricted_url: str,
    monkeypatch: pytest.MonkeyPatch,
    checks: list[str],
) -> None:
    """Each refusal costs a channel and a line in the broker's log."""
    await _provisioned(broker, broker_admin, None)
    monkeypatch.setattr(topology_module, "_FIRST_BIND_PAUSE", timedelta(hours=1))
    bind = Channel.queue_bind
    bound_to: list[str] = []

    async def counted(channel: Channel, queue: str, *args: Any, **options: Any) -> Any:
        bound_to.append(queue)
        return await bind(channel, queue, *args, **options)

    monkeypatch.setattr(Channel, "queue_bind", counted)
    recorder = Recorder()
    async with consuming(make_broker(restricted_url, observer=recorder), retry_delays=as_delays(["0"])):
        assert {"mail", "mail.dlq"} <= set(bound_to)
        bound_to.clear()
        await _more(checks, 3)
        assert not {"mail", "mail.dlq"} & set(bound_to)
    assert recorder.of(Advice) == []


@pytest.mark.usefixtures("checked_often")
async def test_a_deleted_binding_is_created_again_after_the_permission_was_granted(
    make_broker: MakeBroker,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    restricted_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await _provisioned(broker, broker_admin, None)
    monkeypatch.setattr(topology_module, "_FIRST_BIND_PAUSE", timedelta(milliseconds=100))
    monkeypatch.setattr(topology_module, "_LONGEST_BIND_PAUSE", timedelta(milliseconds=100))
    async with consuming(make_broker(restricted_url), retry_delays=as_delays(["0"])):
        await broker_admin.unbind(EXCHANGE, "mail", "order.*")
        await broker_admin.permit("restricted")
        await _bound_again(broker_admin, (EXCHANGE, "mail", "order.*"))


async def test_checks_take_no_channels_of_a_connection_that_an_alarm_blocks(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ, checks: list[str]
) -> None:
    """A connection of the host that publishes and consumes: the broker answers nothing on it until the alarm is over."""
    async with await aio_pika.connect(own_rabbitmq.url) as connection:
        broker = make_broker(connection=connection)
        async with consuming(broker) as inbox:
            await deliver(broker, message(body=b"before"))
            assert connection.transport is not None
            channels = connection.transport.connection.channels
            with memory_alarm(own_rabbitmq.server):
                sending = asyncio.create_task(send(broker, message(body=b"meanwhile")))
                await eventually(partial(is_blocked, connection.transport.connection))
                await _more(checks, 1)  # one may have begun before the alarm
                before = set(channels)
                await _more(checks, 3)
                assert set(channels) <= before
            await sending
            assert (await inbox.next(30)).arrival.body == b"before"
        await broker.close()


async def test_a_deleted_resource_that_may_not_be_declared_is_reported_once(
    make_broker: MakeBroker,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    restricted_url: str,
    checks: list[str],
) -> None:
    await _provisioned(broker, broker_admin, None)
    recorder = Recorder()
    async with consuming(make_broker(restricted_url, observer=recorder), retry_delays=as_delays(["0"])) as inbox:
        await broker_admin.delete_exchange(EXCHANGE)
        await eventually(lambda: recorder.of(Advice))
        await broker_admin.publish("", "mail", b"still here")
        assert (await inbox.next()).arrival.body == b"still here"
        await _more(checks, 3)
        [advice] = recorder.of(Advice)
        assert "the exchange 'shop' is missing, and this RabbitMQ user may not declare it" in advice.text


@pytest.mark.usefixtures("checked_often")
async def test_a_missing_binding_of_a_redeclared_exchange_is_reported_if_the_user_may_not_bind(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin, demoted_url: str
) -> None:
    await _provisioned(broker, broker_admin, None)
    recorder = Recorder()
    await broker_admin.permit("demoted", **RESTRICTED | {"configure": f"^{EXCHANGE}$"})
    async with consuming(make_broker(demoted_url, observer=recorder), retry_delays=as_delays(["0"])):
        await broker_admin.delete_exchange(EXCHANGE)
        await eventually(lambda: _advised(recorder, "queue 'mail' must be bound to exchange 'shop'"))


async def test_a_relay_declares_again_what_is_deleted_while_it_runs(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    """Also the exchange for delays, by which it reaches a single queue without permission to write to the default exchange."""
    await _provisioned(broker, broker_admin, None)
    url = await broker_admin.create_user("relay", "s3cret")
    await broker_admin.permit("relay", write=rf"^{EXCHANGE}.*$")
    relay = make_broker(url)
    await deliver(relay, message(target_queue="mail"))
    for exchange in (EXCHANGE, "shop.delay_0s"):
        await broker_admin.delete_exchange(exchange)

    async def sent() -> bool:
        return list(await send(relay, message("unbound.key"), message(target_queue="mail"))) == [UNROUTABLE, CONFIRMED]

    await eventually(sent)
    await eventually(lambda: _is(broker_admin.depth("mail"), 2))


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
def test_an_unannounced_delay_is_rounded_up(milliseconds: float, rounded: int) -> None:
    assert rounded_delay(timedelta(milliseconds=milliseconds)) == timedelta(milliseconds=rounded)


def test_a_delay_above_the_brokers_limit_is_the_longest() -> None:
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
    await Topology(lambda _: None, report_redeclared=lambda _: None).ensure_dead_letters(inquiry, "shop", "mail")
    assert asked["mail.dlq"].get("x-delivery-limit") == limit


def _advised(recorder: Recorder, text: str) -> bool:
    return any(text in advice.text for advice in recorder.of(Advice))


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
