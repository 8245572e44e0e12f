"""Batches on Redis: one result for each message, whatever happens to other messages or to the server."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outbox.core.message import Message
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.redis import RedisTransport
from tests.contract.support import TIMEOUT, message
from tests.servers.redis import Redis, running_redis
from tests.support import eventually

pytestmark = pytest.mark.redis

SHORT = timedelta(seconds=1)


async def sent(transport: RedisTransport, *messages: Message, timeout: timedelta = TIMEOUT) -> list[SendResult]:
    return list(await transport.send(messages, timeout=timeout))


def bodies(redis: Redis, stream: str) -> Sequence[bytes]:
    return [fields["body"] for fields in redis.read(stream)]


def failure_types(results: Sequence[SendResult]) -> list[str]:
    return [result.failure.type for result in results if isinstance(result, NotSent | Refused | Unconfirmed)]


# --- what an entry carries -------------------------------------------------------------------------------------------------


async def test_an_entry_carries_the_body_and_all_else_as_fields(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    full = replace(
        message("order.placed", b'{"id": 7}'),
        headers={"tenant": "acme", "nested": {"a": [1, "ż"]}, "x-outbox-amqp": {"types": {}}},
        id="7",
        tracking_ids=("root", "7"),
        created_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        ordering_key="customer-1",
        hlc=1_780_000_000_000_001,
        requeue_count=2,
        expires_at=datetime(2036, 5, 4, 3, 2, 1, tzinfo=UTC),
    )
    assert await sent(transport, full) == [CONFIRMED]
    assert redis.read("order.placed") == [
        {
            "body": b'{"id": 7}',
            "x-outbox-message-id": b"7",
            "x-outbox-routing-key": b"order.placed",
            "x-outbox-tracking-ids": b'["root", "7"]',
            "x-outbox-created-at": b"2026-05-04T03:02:01+00:00",
            "content-type": b"application/json",
            "x-outbox-ordering-key": b"customer-1",
            "x-outbox-expires-at": b"2036-05-04T03:02:01+00:00",
            "x-outbox-hlc": b"1780000000000001",
            "x-outbox-requeue-count": b"2",
            "headers": '{"tenant": "acme", "nested": {"a": [1, "ż"]}}'.encode(),
        }
    ]


async def test_a_plain_message_has_no_further_fields(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    assert await sent(transport, replace(message("order.placed"), content_type=None)) == [CONFIRMED]
    [fields] = redis.read("order.placed")
    assert set(fields) == {
        "body",
        "x-outbox-message-id",
        "x-outbox-routing-key",
        "x-outbox-tracking-ids",
        "x-outbox-created-at",
    }


async def test_a_template_or_a_function_names_the_stream(redis: Redis) -> None:
    for transport, key, stream in (
        (RedisTransport(f"{redis.url}?stream=events"), "order.placed", "events"),
        (RedisTransport(f"{redis.url}?stream=shop:{{routing_key}}"), "order.placed", "shop:order.placed"),
        (RedisTransport(redis.url, stream=lambda key: key.split(".")[0]), "order.placed", "order"),
    ):
        redis.create_stream(stream)
        assert await sent(transport, message(key, stream.encode())) == [CONFIRMED]
        assert bodies(redis, stream) == [stream.encode()]
        await transport.close()


async def test_streams_are_created_and_trimmed_only_if_the_url_says_so(redis: Redis, transport: RedisTransport) -> None:
    assert await sent(transport, message("order.placed")) == [UNROUTABLE]
    trimming = RedisTransport(f"{redis.url}?create=true&maxlen=100")
    assert set(await sent(trimming, *(message("order.placed") for _ in range(1_000)))) == {CONFIRMED}
    await trimming.close()
    assert 100 <= redis.client.xlen("order.placed") < 500
    assert set(await sent(transport, *(message("order.placed") for _ in range(1_000)))) == {CONFIRMED}
    assert redis.client.xlen("order.placed") > 1_000


# --- bad messages ----------------------------------------------------------------------------------------------------------


async def test_bad_messages_do_not_affect_others(redis: Redis) -> None:
    streams = {"number": 7, "none": "", "fine": "events", "wrong": "text"}
    transport = RedisTransport(redis.url, stream=lambda key: streams[key])  # type: ignore[arg-type, return-value]
    redis.create_stream("events")
    redis.client.set("text", "no stream")
    batch = [message("number"), message("none"), message("raises"), message("wrong"), message("fine", target_queue="mail")]
    results = await sent(transport, *batch, message("fine", b"1"))
    await transport.close()
    assert [type(result) for result in results[:4]] == [Refused, Refused, Refused, Unconfirmed]
    assert failure_types(results) == ["unsendable", "unsendable", "unsendable", "redis WRONGTYPE"]
    assert results[4:] == [UNROUTABLE, CONFIRMED]
    assert bodies(redis, "events") == [b"1"]


async def test_a_body_that_no_server_takes_is_refused(
    redis: Redis, transport: RedisTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.redis.entries.LARGEST_VALUE", 1_000)
    redis.create_stream("order.placed")
    results = await sent(transport, message("order.placed", b"x" * 1_001), message("order.placed", b"x" * 1_000))
    assert (type(results[0]), results[1]) == (Refused, CONFIRMED)


async def test_a_stream_without_permission_does_not_stop_others(redis: Redis) -> None:
    redis.create_stream("mine")
    redis.create_stream("theirs")
    redis.client.acl_setuser("ada", enabled=True, passwords=["+geheim"], keys=["mine"], commands=["+@all"])
    transport = RedisTransport(redis.url.replace("redis://", "redis://ada:geheim@"))
    results = await sent(transport, message("theirs"), message("mine"))
    await transport.close()
    assert (type(results[0]), results[1]) == (Unconfirmed, CONFIRMED)
    assert failure_types(results) == ["redis NOPERM"]


# --- a server in trouble ---------------------------------------------------------------------------------------------------


@contextmanager
def out_of_memory(redis: Redis) -> Iterator[None]:
    redis.configure(maxmemory=1)
    yield
    redis.configure(maxmemory=0)


@contextmanager
def read_only(redis: Redis) -> Iterator[None]:
    redis.client.replicaof("127.0.0.1", 1)
    yield
    redis.client.replicaof("NO", "ONE")


@contextmanager
def without_replicas(redis: Redis) -> Iterator[None]:
    redis.configure(min_replicas_to_write=1)
    yield
    redis.configure(min_replicas_to_write=0)


@pytest.mark.parametrize(
    ("trouble", "code"), [(out_of_memory, "OOM"), (read_only, "READONLY"), (without_replicas, "NOREPLICAS")]
)
async def test_a_server_that_stores_nothing_is_not_the_messages_fault(
    redis: Redis, transport: RedisTransport, trouble: Callable[[Redis], Iterator[None]], code: str
) -> None:
    redis.create_stream("order.placed")
    await transport.open()
    with trouble(redis):  # type: ignore[attr-defined]  # each is a context manager
        results = await sent(transport, message("order.placed", b"1"), message("order.placed", b"2"))
        assert [type(result) for result in results] == [NotSent, NotSent]
        assert failure_types(results) == [f"redis {code}"] * 2
    await transport.open()
    assert await sent(transport, message("order.placed", b"3")) == [CONFIRMED]
    assert bodies(redis, "order.placed") == [b"3"]


async def test_a_server_that_loads_its_data_is_waited_for(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    redis.configure(rdbcompression="no")
    redis.client.mset({f"key {number}": b"x" * 2_000 for number in range(100)})
    redis.client.bgrewriteaof()  # into the form whose loading lets commands in
    await eventually(lambda: redis.client.info("persistence")["aof_last_bgrewrite_status"] == "ok" and not _rewrites(redis))
    redis.kill()
    # In microseconds for each key, and how many bytes are loaded before commands are answered.
    redis.start(loaded=False, key_load_delay="50000", loading_process_events_interval_bytes="1024")
    with pytest.raises(BrokerUnavailableError, match="loading"):
        await transport.open()
    [result] = await sent(transport, message("order.placed"))
    assert isinstance(result, NotSent)
    redis.configure(key_load_delay=0)
    await eventually(lambda: redis.client.info("persistence")["loading"] == 0)
    await transport.open()
    assert await sent(transport, message("order.placed")) == [CONFIRMED]


def _rewrites(redis: Redis) -> bool:
    state = redis.client.info("persistence")
    return bool(state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"])


async def test_what_was_confirmed_survives_a_kill_of_the_server(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    confirmed: list[bytes] = []

    async def keep_sending() -> None:
        for number in range(10_000):
            batch = [message("order.placed", b"%d %d" % (number, part)) for part in range(50)]
            results = await sent(transport, *batch)
            confirmed.extend(each.body for each, result in zip(batch, results, strict=True) if result == CONFIRMED)
            if any(isinstance(result, NotSent) for result in results):
                return

    sending = asyncio.create_task(keep_sending())
    await eventually(lambda: len(confirmed) > 500)
    redis.kill()
    await sending
    with pytest.raises(BrokerUnavailableError, match="unavailable"):
        await transport.open()
    redis.start()
    await transport.open()
    assert set(confirmed) <= set(bodies(redis, "order.placed"))
    assert await sent(transport, message("order.placed", b"after")) == [CONFIRMED]


async def test_an_idle_transport_notices_a_restart_and_a_loss(
    redis: Redis, transport: RedisTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.redis.server.IDLE_TIME", 0)
    await transport.open()
    redis.kill()
    redis.start()
    await transport.open()
    redis.kill()
    with pytest.raises(BrokerUnavailableError):
        await transport.open()


async def test_an_answer_that_comes_too_late_belongs_to_no_other_message(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    await transport.open()
    redis.freeze()
    [late] = await sent(transport, message("order.placed", b"1"), timeout=SHORT)
    assert isinstance(late, NotSent)
    assert "confirmed nothing more within" in late.failure.message
    redis.thaw()
    assert await sent(transport, message("unbound.key"), message("order.placed", b"2")) == [UNROUTABLE, CONFIRMED]


async def test_what_a_frozen_server_had_received_does_not_arrive_after_later_messages(
    redis: Redis, transport: RedisTransport
) -> None:
    redis.create_stream("order.placed")
    # Two connections, so that the next batch needs no new one.
    first, second = [message("order.placed", b"a")], [message("order.placed", b"b")]
    await asyncio.gather(transport.send(first, timeout=TIMEOUT), transport.send(second, timeout=TIMEOUT))
    redis.freeze()
    [late] = await sent(transport, message("order.placed", b"1"), timeout=SHORT)
    assert isinstance(late, NotSent)
    assert transport._abandoned
    again = asyncio.create_task(sent(transport, message("order.placed", b"1")))
    following = asyncio.create_task(sent(transport, message("order.placed", b"2")))
    redis.thaw()
    assert await again == [CONFIRMED]
    count = redis.client.xlen("order.placed")
    assert await following == [CONFIRMED]
    assert await sent(transport, message("order.placed", b"3")) == [CONFIRMED]
    arrived = bodies(redis, "order.placed")
    # The late copy arrived before the second one, or not at all.
    assert b"1" not in arrived[count:]
    assert not transport._abandoned
    assert "cmdstat_client|kill" in redis.client.info("commandstats")


async def test_a_cancelled_batch_ends_at_once(redis: Redis, transport: RedisTransport) -> None:
    redis.create_stream("order.placed")
    await transport.open()
    redis.freeze()
    sending = asyncio.create_task(sent(transport, message("order.placed", b"1"), timeout=timedelta(minutes=10)))
    await eventually(lambda: not transport._idle)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    redis.thaw()
    assert await sent(transport, message("order.placed", b"2")) == [CONFIRMED]
    assert bodies(redis, "order.placed")[-1] == b"2"


# --- servers that may lose messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"appendonly": "no"}, "appendonly is no"),
        ({"appendfsync": "everysec"}, "appendfsync is everysec"),
        ({"no_appendfsync_on_rewrite": "yes"}, "no-appendfsync-on-rewrite is yes"),
        ({"maxmemory": "1gb", "maxmemory_policy": "allkeys-lru"}, "set maxmemory-policy to noeviction"),
    ],
)
async def test_a_server_that_may_lose_messages_is_refused(redis: Redis, settings: dict[str, str], complaint: str) -> None:
    redis.configure(**settings)
    transport = RedisTransport(redis.url)
    with pytest.raises(TopologyError, match=rf"{complaint}.*\?wait=1.*\?durability=lossy"):
        await transport.open()
    [result] = await sent(transport, message("order.placed"))
    assert isinstance(result, NotSent)
    lossy = RedisTransport(f"{redis.url}?durability=lossy")
    await lossy.open()
    await lossy.close()


async def test_a_server_that_hides_its_configuration_needs_a_word_from_the_url(redis: Redis) -> None:
    redis.create_stream("order.placed")
    redis.client.acl_setuser("ada", enabled=True, passwords=["+geheim"], keys=["*"], commands=["+xadd", "+auth", "+ping"])
    url = redis.url.replace("redis://", "redis://ada:geheim@")
    with pytest.raises(TopologyError, match="does not show its configuration"):
        await RedisTransport(url).open()
    lossy = RedisTransport(f"{url}?durability=lossy")
    await lossy.open()
    assert await sent(lossy, message("order.placed")) == [CONFIRMED]
    await lossy.close()


@pytest.fixture
def replica(redis: Redis, tmp_path: Path, servers_folder: Path) -> Iterator[Redis]:
    """A replica of the server, which itself does not write to its disk."""
    redis.configure(appendonly="no", repl_diskless_sync_delay=0)
    with running_redis(servers_folder / f"replica-{tmp_path.name}", {}) as server:
        server.client.replicaof("127.0.0.1", redis.port)
        yield server


async def test_a_message_is_confirmed_once_enough_replicas_have_it(redis: Redis, replica: Redis) -> None:
    redis.create_stream("order.placed")
    transport = RedisTransport(f"{redis.url}?wait=1")
    await eventually(lambda: redis.client.info("replication")["connected_slaves"] == 1)
    await transport.open()
    assert await sent(transport, message("order.placed", b"1"), message("unbound.key")) == [CONFIRMED, UNROUTABLE]
    assert bodies(replica, "order.placed") == [b"1"]
    replica.freeze()
    results = await sent(transport, message("order.placed", b"2"), timeout=SHORT)
    assert [type(result) for result in results] == [NotSent]
    assert "fewer than 1 replicas" in str(results)
    replica.thaw()
    await eventually(lambda: redis.client.info("replication")["connected_slaves"] == 1)
    await transport.open()
    assert await sent(transport, message("order.placed", b"3")) == [CONFIRMED]
    replica.kill()
    await eventually(lambda: redis.client.info("replication")["connected_slaves"] == 0)
    await transport.close()
    with pytest.raises(BrokerUnavailableError, match="0 of the 1 replicas"):
        await transport.open()


async def test_a_replica_is_not_sent_to(redis: Redis, replica: Redis) -> None:
    transport = RedisTransport(replica.url)
    with pytest.raises(BrokerUnavailableError, match="name the primary"):
        await transport.open()


async def test_a_server_without_streams_that_can_be_missing_is_refused(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.transports.redis.server.OLDEST_VERSION", (99, 0))
    with pytest.raises(TopologyError, match="too old"):
        await RedisTransport(redis.url).open()


async def test_a_wrong_password_is_an_outage_and_not_shown(redis: Redis) -> None:
    transport = RedisTransport(redis.url.replace("redis://", "redis://ada:geheim@"))
    with pytest.raises(BrokerUnavailableError, match=r"(?i)invalid username-password pair") as refused:
        await transport.open()
    assert "geheim" not in str(refused.value)
