"""Batches on NATS: one result for each message, whatever happens to other messages or to the server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import pytest

from outbox.core.message import Message
from outbox.errors import BrokerUnavailableError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.nats import NatsTransport
from tests.contract.support import TIMEOUT, message
from tests.servers.nats import Nats, running_nats
from tests.support import eventually

SHORT = timedelta(seconds=1)


async def sent(transport: NatsTransport, *messages: Message, timeout: timedelta = TIMEOUT) -> list[SendResult]:
    return list(await transport.send(messages, timeout=timeout))


@asynccontextmanager
async def transport_to(server: Nats, **options: Any) -> AsyncIterator[NatsTransport]:
    transport = NatsTransport(server.url, **options)
    try:
        yield transport
    finally:
        await transport.close()


async def bodies(server: Nats, stream: str) -> list[bytes]:
    return [each.data for each in await server.read(stream)]


def failures(results: list[SendResult]) -> list[str]:
    return [result.failure.type for result in results if isinstance(result, Refused)]


# --- what a message carries -------------------------------------------------------------------------------------------------


async def test_a_message_carries_its_body_and_headers(nats_server: Nats, transport: NatsTransport, stream: str) -> None:
    full = replace(
        message(f"{stream}.placed", b'{"id": 7}'),
        headers={
            "tenant": "acme",
            "city": "Łódź",
            "size": 3,
            "nested": {"a": [1, "ż"]},
            "none": None,
            "padded": " x ",
            "x-outbox-amqp": {"types": {}},
        },
        id="7",
        tracking_ids=("root", "7"),
        created_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        ordering_key="customer-1",
        hlc=1_780_000_000_000_001,
        requeue_count=2,
        expires_at=datetime(2036, 5, 4, 3, 2, 1, tzinfo=UTC),
    )
    assert await sent(transport, full) == [CONFIRMED]
    [stored] = await nats_server.read(stream)
    assert (stored.subject, stored.data) == (f"{stream}.placed", b'{"id": 7}')
    assert stored.headers == {
        "Nats-Msg-Id": "7:2",
        "x-outbox-message-id": "7",
        "x-outbox-routing-key": f"{stream}.placed",
        "x-outbox-tracking-ids": '["root", "7"]',
        "x-outbox-created-at": "2026-05-04T03:02:01+00:00",
        "x-outbox-expires-at": "2036-05-04T03:02:01+00:00",
        "x-outbox-hlc": "1780000000000001",
        "x-outbox-requeue-count": "2",
        "x-outbox-ordering-key": "customer-1",
        "content-type": "application/json",
        "tenant": "acme",
        "city": "Łódź",
        "size": "3",
        "nested": '{"a": [1, "ż"]}',
        "none": "null",
        "padded": '" x "',
        "x-outbox-json-headers": '["size", "nested", "none", "padded"]',
    }


async def test_line_breaks_in_headers_add_no_headers(nats_server: Nats, transport: NatsTransport, stream: str) -> None:
    evil = "x\r\nNats-Rollup: all\r\n\r\nPUB a 0"
    batch = [
        message(f"{stream}.a", headers={"note": evil, "list": [evil]}, ordering_key=evil),
        replace(message(f"{stream}.a"), id=evil),
    ]
    assert await sent(transport, *batch) == [CONFIRMED, CONFIRMED]
    first, second = await nats_server.read(stream)
    encoded = '"x\\r\\nNats-Rollup: all\\r\\n\\r\\nPUB a 0"'
    assert first.headers is not None
    assert second.headers is not None
    assert (first.headers["note"], first.headers["list"]) == (encoded, f"[{encoded}]")
    assert first.headers["x-outbox-ordering-key"] == second.headers["x-outbox-message-id"] == encoded
    assert "Nats-Rollup" not in {*first.headers, *second.headers}


async def test_a_template_or_a_function_names_the_subject(nats_server: Nats, stream: str) -> None:
    async with (
        transport_to(nats_server, subject=f"{stream}.all") as one,
        transport_to(nats_server, subject=f"{stream}.{{routing_key}}") as prefixed,
        transport_to(nats_server, subject=lambda key: f"{stream}.{key.split('/')[1]}") as chosen,
    ):
        assert await sent(one, message("order placed")) == [CONFIRMED]
        assert await sent(prefixed, message("order.placed")) == [CONFIRMED]
        assert await sent(chosen, message("orders/placed")) == [CONFIRMED]
    found = [(each.subject, (each.headers or {})["x-outbox-routing-key"]) for each in await nats_server.read(stream)]
    assert found == [
        (f"{stream}.all", "order placed"),
        (f"{stream}.order.placed", "order.placed"),
        (f"{stream}.placed", "orders/placed"),
    ]


async def test_messages_keep_their_order_over_batches(nats_server: Nats, transport: NatsTransport, stream: str) -> None:
    for batch in range(5):
        numbers = range(batch * 100, batch * 100 + 100)
        assert set(await sent(transport, *(message(f"{stream}.a", str(n).encode()) for n in numbers))) == {CONFIRMED}
    assert [int(body) for body in await bodies(nats_server, stream)] == list(range(500))


async def test_a_message_that_is_sent_again_is_stored_once(nats_server: Nats, transport: NatsTransport, stream: str) -> None:
    again = message(f"{stream}.a")
    assert await sent(transport, again) == [CONFIRMED]
    assert await sent(transport, again, again) == [CONFIRMED, CONFIRMED]
    # A requeue is a new message.
    assert await sent(transport, replace(again, requeue_count=1)) == [CONFIRMED]
    assert await nats_server.count(stream) == 2


# --- bad messages ----------------------------------------------------------------------------------------------------------


async def test_messages_that_nats_does_not_allow_are_refused_and_others_are_not(
    nats_server: Nats, transport: NatsTransport, stream: str
) -> None:
    bad = [
        message("order placed"),
        message(f"{stream}..placed"),
        message(f".{stream}"),
        message(f"{stream}.*"),
        message(f"{stream}.>"),
        message(f"{stream}.a\r\nPUB b 0"),
        message("$JS.API.STREAM.DELETE.events"),
        message("_INBOX.x"),
        message(f"{stream}.{'x' * 1_000}"),
        message(f"{stream}.a", headers={"Nats-Rollup": "all"}),
        message(f"{stream}.a", headers={"a: b\r\nc": "d"}),
        message(f"{stream}.a", headers={"": "d"}),
    ]
    results = await sent(transport, *bad, message(f"{stream}.a", b"fine"))
    assert failures(results) == ["unsendable"] * len(bad)
    assert results[-1] == CONFIRMED
    assert await bodies(nats_server, stream) == [b"fine"]


async def test_a_message_that_is_too_large_for_the_server_or_the_stream_is_refused(
    nats_server: Nats, transport: NatsTransport, word: str
) -> None:
    await nats_server.create_stream(word, f"{word}.>", max_msg_size=10_000)
    large = [
        message(f"{word}.a", b"x" * 1_048_576),  # with its headers it is more than max_payload
        message(f"{word}.a", b"x" * 20_000),
        message(f"{word}.a", headers={"large": "x" * 70_000}),
    ]
    results = await sent(transport, *large, message(f"{word}.a", b"fine"))
    assert failures(results) == ["too large", "nats 10054", "nats 10054"]
    assert results[-1] == CONFIRMED
    assert await bodies(nats_server, word) == [b"fine"]


async def test_a_function_that_fails_affects_only_its_message(nats_server: Nats, stream: str) -> None:
    subjects: dict[str, Any] = {"number": 7, "fine": f"{stream}.a"}
    async with transport_to(nats_server, subject=lambda key: subjects[key]) as transport:
        results = await sent(transport, message("number"), message("raises"), message("fine"))
    assert failures(results) == ["unsendable"] * 2
    assert results[2] == CONFIRMED


# --- streams in trouble ----------------------------------------------------------------------------------------------------


async def test_a_message_without_a_stream_is_unroutable_until_one_exists(
    nats_server: Nats, transport: NatsTransport, stream: str
) -> None:
    late = f"late-{uuid4()}"
    batch = [message(f"{late}.a"), message(f"{stream}.a", b"1"), message(f"{stream}.a", target_queue="mail")]
    assert await sent(transport, *batch) == [UNROUTABLE, CONFIRMED, UNROUTABLE]
    await nats_server.create_stream(late, f"{late}.>")
    assert await sent(transport, message(f"{late}.a")) == [CONFIRMED]


async def test_a_full_stream_refuses_and_takes_messages_again_when_it_has_room(
    nats_server: Nats, transport: NatsTransport, word: str
) -> None:
    await nats_server.create_stream(word, f"{word}.>", max_msgs=2, discard="new")
    results = await sent(transport, *(message(f"{word}.a") for _ in range(3)))
    assert results[:2] == [CONFIRMED, CONFIRMED]
    assert isinstance(results[2], Refused)
    assert results[2].by_queue
    assert results[2].failure.message == "maximum messages exceeded"
    await nats_server.create_stream(word, f"{word}.>", max_msgs=3, discard="new")
    assert await sent(transport, message(f"{word}.a")) == [CONFIRMED]


async def test_a_sealed_stream_is_not_the_messages_fault(nats_server: Nats, transport: NatsTransport, stream: str) -> None:
    await nats_server.create_stream(stream, f"{stream}.>", sealed=True)
    [result] = await sent(transport, message(f"{stream}.a"))
    assert isinstance(result, Unconfirmed)
    assert "sealed" in result.failure.message


async def test_a_stream_that_does_not_confirm_delays_only_its_own_messages(
    nats_server: Nats, transport: NatsTransport, stream: str
) -> None:
    silent = f"silent-{uuid4()}"
    await nats_server.create_stream(silent, f"{silent}.>", no_ack=True)
    stuck = asyncio.create_task(sent(transport, message(f"{silent}.a"), message(f"{stream}.a", b"1"), timeout=SHORT))
    assert await sent(transport, message(f"{stream}.a", b"2")) == [CONFIRMED]
    assert not stuck.done()
    first, second = await stuck
    assert isinstance(first, Unconfirmed)
    assert second == CONFIRMED


async def test_answers_of_others_on_the_subject_are_not_taken_for_those_of_a_stream(
    nats_server: Nats, transport: NatsTransport, word: str
) -> None:
    answers = iter([b"ok", b"[]", b'{"seq": 1}', b'{"error": "no"}', b'"\xff"'])

    async def answer(request: Any) -> None:
        for each in answers:
            await request.respond(each)

    async with await nats.connect(nats_server.url) as client:
        await client.subscribe(f"{word}.a", cb=answer)
        await client.flush()
        [result] = await sent(transport, message(f"{word}.a"), timeout=SHORT)
    assert isinstance(result, Unconfirmed)


# --- a server in trouble ---------------------------------------------------------------------------------------------------


async def test_a_server_that_is_away_is_not_the_messages_fault(own_nats: Nats) -> None:
    await own_nats.create_stream("events", "events.>")
    async with transport_to(own_nats) as transport:
        assert await sent(transport, message("events.a", b"1")) == [CONFIRMED]
        own_nats.kill()
        [result] = await sent(transport, message("events.a", b"2"), timeout=SHORT)
        assert isinstance(result, NotSent)
        with pytest.raises(BrokerUnavailableError, match=r"NATS is not available: .*(refused|failed)"):
            await transport.open()
        own_nats.start()
        await transport.open()
        assert await sent(transport, message("events.a", b"3")) == [CONFIRMED]
    assert await bodies(own_nats, "events") == [b"1", b"3"]


async def test_batches_that_connect_at_the_same_time_end_in_time_if_the_server_is_mute() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1") as server:
        transport = NatsTransport(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        batches = [sent(transport, message("a", b"1"), timeout=SHORT) for _ in range(40)]
        # One after another they would take 40 seconds. Together they take one, and the rest is for a busy machine.
        async with asyncio.timeout(30):
            results = await asyncio.gather(*batches)
        assert all(isinstance(result, NotSent) for [result] in results)
        await transport.close()


async def test_a_kill_in_the_middle_of_a_batch_loses_nothing_that_was_confirmed(own_nats: Nats) -> None:
    await own_nats.create_stream("events", "events.>")
    batch = [message("events.a", str(number).encode() + b" " * 5_000) for number in range(5_000)]
    async with transport_to(own_nats) as transport:
        await transport.open()
        sending = asyncio.create_task(sent(transport, *batch))
        async with await nats.connect(own_nats.url, max_reconnect_attempts=0, error_cb=ignore) as client:
            jetstream = client.jetstream()

            async def some() -> bool:
                return (await jetstream.stream_info("events")).state.messages > 100

            await eventually(some)
        own_nats.kill()
        results = await sending
        assert {type(result) for result in results} <= {type(CONFIRMED), NotSent}
        own_nats.start()
        await transport.open()
        again = [each for each, result in zip(batch, results, strict=True) if result != CONFIRMED]
        assert set(await sent(transport, *again)) <= {CONFIRMED}
    stored = [int(body) for body in await bodies(own_nats, "events")]
    # The duplicate window survives the kill, too.
    assert sorted(stored) == list(range(5_000))


async def ignore(_error: Exception) -> None:
    pass


async def test_a_frozen_server_costs_the_connection_and_late_answers_are_ignored(own_nats: Nats) -> None:
    await own_nats.create_stream("events", "events.>")
    slow = message("events.a", b"1")
    async with transport_to(own_nats) as transport:
        await transport.open()
        own_nats.freeze()
        assert isinstance((await sent(transport, slow, timeout=SHORT))[0], NotSent)
        assert isinstance((await sent(transport, slow, timeout=SHORT))[0], NotSent)
        own_nats.thaw()

        async def confirmed() -> bool:
            return await sent(transport, slow, message("unbound.key")) == [CONFIRMED, UNROUTABLE]

        await eventually(confirmed)
    assert await bodies(own_nats, "events") == [b"1"]


async def test_a_late_answer_is_not_given_to_another_message(own_nats: Nats) -> None:
    await own_nats.create_stream("events", "events.>")
    async with transport_to(own_nats) as transport:
        await transport.open()
        own_nats.freeze()
        sending = asyncio.create_task(sent(transport, message("events.a"), timeout=timedelta(minutes=10)))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        waiting = asyncio.create_task(sent(transport, message("unbound.key"), message("events.a", b"next")))
        own_nats.thaw()
        # The answer to the cancelled message comes first, over the same connection.
        assert await waiting == [UNROUTABLE, CONFIRMED]


async def test_a_transport_ends_although_a_frozen_server_does_not_take_the_rest_of_a_cancelled_batch(own_nats: Nats) -> None:
    await own_nats.create_stream("events", "events.>")
    transport = NatsTransport(own_nats.url)
    await transport.open()
    own_nats.freeze()
    # More than the sockets of both sides hold.
    sending = asyncio.create_task(sent(transport, *[message("events.a", b" " * 900_000)] * 20))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    async with asyncio.timeout(9):  # a relay has 10 s to end
        await transport.close()
    own_nats.thaw()


async def test_without_jetstream_nothing_is_sent_and_nothing_is_held(own_nats: Nats) -> None:
    own_nats.stop()
    own_nats.start(jetstream=False)
    async with transport_to(own_nats) as transport:
        [result] = await sent(transport, message("events.a"))
    assert isinstance(result, NotSent)
    assert "JetStream is not enabled" in result.failure.message


async def test_a_subject_that_the_user_may_not_publish_to_delays_only_its_own_messages(servers_folder: Path) -> None:
    users = """
        authorization { users = [
            { user: "ada", password: "p@ss", permissions: {
                publish: ["events.>", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.CREATE.*"], subscribe: "_INBOX.>" } }
        ] }
    """
    with running_nats(servers_folder / f"nats-{uuid4()}", users) as server:
        server.url = server.url.replace("nats://", "nats://ada:p%40ss@")
        async with await nats.connect(server.url.replace("p%40ss", "p@ss"), user="ada", password="p@ss") as client:
            await client.jetstream().add_stream(name="events", subjects=["events.>", "Secret.>"])
        async with transport_to(server) as transport:
            first, second = await sent(transport, message("Secret.a"), message("events.a"), timeout=timedelta(minutes=10))
            assert isinstance(first, Unconfirmed)
            assert "permissions violation" in first.failure.message
            assert second == CONFIRMED
        async with transport_to(Nats(servers_folder)) as stranger:
            stranger._link._url = f"nats://127.0.0.1:{server.port}"
            with pytest.raises(BrokerUnavailableError, match="Authorization Violation"):
                await stranger.open()


@pytest.mark.parametrize("encrypted", [lambda url: url.replace("nats://", "natss://")])
async def test_a_password_is_not_sent_without_tls_if_the_url_wants_it(
    nats_server: Nats, encrypted: Callable[[str], str]
) -> None:
    transport = NatsTransport(encrypted(nats_server.url))
    with pytest.raises(BrokerUnavailableError, match="does not offer TLS"):
        await transport.open()
    await transport.close()
