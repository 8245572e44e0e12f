"""Batches on SQS and SNS: one result for each message, whatever happens to other messages or to AWS."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from outbox.core.message import Message
from outbox.errors import BrokerUnavailableError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.aws import AwsTransport
from outbox.transports.aws.entries import entry_of
from tests.aws.canned import CannedAws
from tests.contract.support import TIMEOUT, message
from tests.servers.moto import ACCOUNT, CREDENTIALS, REGION, Moto
from tests.support.processes import free_port

SHORT = timedelta(seconds=1)
MOST = 1024**2


@pytest.fixture
async def transport(moto: Moto) -> AsyncIterator[AwsTransport]:
    """A transport to queues, which are named after the routing keys."""
    transport = AwsTransport(moto.sqs())
    yield transport
    await transport.close()


async def sent(transport: AwsTransport, *messages: Message, timeout: timedelta = TIMEOUT) -> list[SendResult]:
    return list(await transport.send(messages, timeout=timeout))


def bodies(moto: Moto, queue: str) -> list[str]:
    return [each["Body"] for each in moto.receive(queue)]


def failure_types(results: Sequence[SendResult]) -> list[str]:
    return [result.failure.type for result in results if isinstance(result, NotSent | Refused | Unconfirmed)]


def numbers(count: int, **fields: Any) -> list[Message]:
    return [message("mail", str(number).encode(), **fields) for number in range(count)]


# --- against moto ------------------------------------------------------------------------------------------------------------


async def test_queues_are_named_by_a_template_or_a_function(moto: Moto) -> None:
    for transport, queue in (
        (AwsTransport(f"{moto.sqs()}&queue=shop.{{routing_key}}"), "shop-order-placed"),
        (AwsTransport(f"{moto.sqs()}&queue=events&account={ACCOUNT}"), "events"),
        (AwsTransport(moto.sqs(), queue=lambda key: key.split(".")[0]), "order"),
    ):
        moto.create_queue(queue)
        assert await sent(transport, message("order.placed", queue.encode())) == [CONFIRMED]
        assert bodies(moto, queue) == [queue]
        await transport.close()


async def test_bad_messages_and_missing_queues_do_not_affect_others(moto: Moto) -> None:
    queues = {"number": 7, "bad": "a/b", "fine": "events", "gone": "gone"}
    transport = AwsTransport(moto.sqs(), queue=lambda key: queues[key])  # type: ignore[arg-type, return-value]
    moto.create_queue("events")
    largest = message("fine", b"x")
    largest = replace(largest, body=b"x" * (MOST - entry_of(largest).size + 1))
    assert entry_of(largest).size == MOST
    results = await sent(
        transport,
        message("number"),
        message("bad"),
        message("raises"),
        message("fine", b"x" * MOST),
        message("gone"),
        message("fine", target_queue="mail"),
        largest,
        message("fine", b"1"),
    )
    assert failure_types(results) == ["unsendable"] * 4
    assert [type(result) for result in results[:4]] == [Refused] * 4
    assert results[4:] == [UNROUTABLE, UNROUTABLE, CONFIRMED, CONFIRMED]
    assert sorted(len(body) for body in bodies(moto, "events")) == [1, len(largest.body)]
    # A queue that is created later, and one that is deleted, are noticed at once.
    moto.create_queue("gone")
    assert await sent(transport, message("gone")) == [CONFIRMED]
    moto.call("DeleteQueue", QueueUrl=moto.url_of("gone"))
    assert await sent(transport, message("gone"), message("fine", b"2")) == [UNROUTABLE, CONFIRMED]
    await transport.close()


async def test_a_fifo_queue_has_the_order_of_each_key_and_drops_what_is_sent_again(moto: Moto) -> None:
    moto.create_queue("mail.fifo")
    transport = AwsTransport(f"{moto.sqs()}&queue=mail.fifo")
    batch = [message("mail", str(number).encode(), ordering_key=f"key {number % 3}") for number in range(25)]
    alone = numbers(2)
    assert set(await sent(transport, *batch, *alone)) == {CONFIRMED}
    assert set(await sent(transport, *batch[:5], *alone)) == {CONFIRMED}
    again = replace(batch[0], requeue_count=1)
    assert await sent(transport, again) == [CONFIRMED]
    await transport.close()
    found: dict[str, list[int]] = {}
    while messages := moto.take("mail.fifo"):
        for each in messages:
            found.setdefault(each["Attributes"]["MessageGroupId"], []).append(int(each["Body"]))
    keys = [entry_of(each).group for each in batch[:3]]
    assert [found[key] for key in keys] == [[*range(0, 25, 3), 0], [*range(1, 25, 3)], [*range(2, 25, 3)]]
    assert sorted(found.keys() - set(keys)) == sorted(each.id for each in alone)


async def test_what_is_not_answered_in_time_was_not_sent(moto: Moto, transport: AwsTransport) -> None:
    moto.create_queue("mail")
    await transport.open()
    assert await sent(transport, *numbers(1)) == [CONFIRMED]
    moto.freeze()
    try:
        assert failure_types(await sent(transport, *numbers(12), timeout=SHORT)) == ["timeout"] * 12
        sending = asyncio.create_task(transport.send(numbers(1), timeout=TIMEOUT))
        await asyncio.wait([sending], timeout=0.1)
        sending.cancel()
        await asyncio.wait([sending])
        assert sending.cancelled()
    finally:
        moto.thaw()
    assert await sent(transport, *numbers(1)) == [CONFIRMED]


async def test_an_endpoint_that_is_away_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    transport = AwsTransport(f"sqs://eu-west-1?endpoint_url=http://127.0.0.1:{free_port()}")
    with pytest.raises(BrokerUnavailableError, match="AWS is unavailable: Could not connect"):
        await transport.open()
    [result] = await sent(transport, message("mail"))
    assert isinstance(result, NotSent)
    await transport.close()


@pytest.mark.parametrize("url", ["sqs://eu-west-1", f"sns://eu-west-1/orders?account={ACCOUNT}"])
@pytest.mark.parametrize(
    "answer",
    [
        b"200 OK\r\nContent-Length: 14\r\n\r\n<html>Sign in!",
        b"200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
        b"200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"400 Bad Request\r\nContent-Length: 1\r\n\r\n\xff",
        b"403 Forbidden\r\nContent-Length: 14\r\n\r\n<html>Blocked!",
    ],
)
async def test_an_answer_that_is_none_of_aws_is_a_result(answer: bytes, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)

    async def be_a_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100_000)
        writer.write(b"HTTP/1.1 " + answer)
        writer.close()

    async with await asyncio.start_server(be_a_proxy, "127.0.0.1") as server:
        endpoint = f"endpoint_url=http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = AwsTransport(f"{url}{'&' if '?' in url else '?'}{endpoint}")
        with suppress(BrokerUnavailableError):
            await transport.open()
        [result] = await sent(transport, message("mail"))
        assert isinstance(result, NotSent | Unconfirmed)
        await transport.close()


async def test_without_credentials_the_error_explains_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    transport = AwsTransport("sqs://eu-west-1")
    with pytest.raises(BrokerUnavailableError, match="no credentials of AWS: set AWS_ACCESS_KEY_ID"):
        await transport.open()
    await transport.close()


async def test_a_topic_without_subscriptions_gets_no_messages(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.transports.aws.transport.CHECK_SUBSCRIPTIONS_AFTER", 0.0)
    transport = AwsTransport(moto.sns("orders"))
    assert await sent(transport, *numbers(2)) == [UNROUTABLE, UNROUTABLE]
    topic = moto.create_topic("orders")
    assert await sent(transport, *numbers(2)) == [UNROUTABLE, UNROUTABLE]
    moto.create_queue("mail")
    moto.subscribe(topic, "mail")
    assert set(await sent(transport, *numbers(12), message("mail", b"x" * 200_000), message("mail", b"y" * 200_000))) == {
        CONFIRMED
    }
    assert moto.counts("mail") == (14, 0)
    await transport.close()


@pytest.mark.parametrize("pages", [1, 2])
async def test_only_confirmed_subscriptions_count_on_whatever_page_they_are(
    moto: Moto, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    transport = AwsTransport(moto.sns("orders"))
    call = transport._aws.call

    async def listing(service: str, operation: str, **parameters: Any) -> Any:
        if operation != "list_subscriptions_by_topic":
            return await call(service, operation, **parameters)
        if "NextToken" in parameters:  # moto confirms each subscription at once
            return {"Subscriptions": [{"SubscriptionArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:orders:1"}]}
        found = {"Subscriptions": [{"SubscriptionArn": "PendingConfirmation"}, {"SubscriptionArn": "Deleted"}]}
        return found if pages == 1 else found | {"NextToken": "more"}

    moto.create_topic("orders")
    monkeypatch.setattr(transport._aws, "call", listing)
    assert await transport.has_subscription() is (pages == 2)
    assert await sent(transport, *numbers(1)) == [UNROUTABLE if pages == 1 else CONFIRMED]
    await transport.close()


# --- against canned answers --------------------------------------------------------------------------------------------------


def error(code: str, status: int = 400, text: str = "so it is") -> tuple[int, dict[str, Any]]:
    return status, {"__type": f"com.amazonaws.sqs#{code}", "message": text}


async def test_each_entry_has_its_own_result(canned: CannedAws) -> None:
    transport = AwsTransport(canned.url)

    def failed(number: int, code: str, *, at_fault: bool) -> dict[str, Any]:
        return {"Id": str(number), "Code": code, "SenderFault": at_fault, "Message": "so it is"}

    canned.answers["SendMessageBatch"] = [
        (
            200,
            {
                "Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "0"}],
                "Failed": [
                    failed(1, "InvalidMessageContents", at_fault=True),
                    failed(2, "InternalError", at_fault=False),
                    failed(3, "KmsThrottled", at_fault=True),
                    failed(4, "KmsAccessDenied", at_fault=True),
                ],
            },
        )
    ]
    results = await sent(transport, *numbers(6))
    await transport.close()
    assert results[0] == CONFIRMED
    assert [type(result) for result in results[1:]] == [Refused, NotSent, NotSent, Unconfirmed, NotSent]
    assert failure_types(results) == [
        "aws InvalidMessageContents",
        "aws InternalError",
        "aws KmsThrottled",
        "aws KmsAccessDenied",
        "aws",
    ]
    [request] = canned.of("SendMessageBatch")
    assert [entry["Id"] for entry in request["Entries"]] == ["0", "1", "2", "3", "4", "5"]


async def test_a_request_that_is_refused_because_of_one_message_is_sent_one_by_one(canned: CannedAws) -> None:
    transport = AwsTransport(canned.url)
    fine = (200, {"Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "0"}], "Failed": []})
    last = (200, {"Successful": [{"Id": "2", "MessageId": "m", "MD5OfMessageBody": "0"}], "Failed": []})
    canned.answers["SendMessageBatch"] = [error("InvalidParameterValue"), fine, error("InvalidParameterValue"), last]
    results = await sent(transport, *numbers(3))
    await transport.close()
    assert [type(result) for result in results] == [type(CONFIRMED), Refused, type(CONFIRMED)]


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (error("AccessDenied", 403), Unconfirmed, "AccessDenied"),
        (error("KmsDisabled"), Unconfirmed, "KmsDisabled"),
        (error("InvalidClientTokenId", 403), NotSent, "AWS refuses the credentials of this process"),
        (error("ExpiredToken", 403), NotSent, "AWS refuses the credentials of this process"),
        (error("RequestThrottled"), NotSent, "AWS is unavailable"),
        (error("SomethingElse", 503), NotSent, "AWS is unavailable"),
        (error("BatchRequestTooLong"), Refused, "so it is"),
    ],
)
async def test_errors_of_a_request_cost_an_attempt_only_if_the_message_is_at_fault(
    canned: CannedAws, answer: tuple[int, dict[str, Any]], kind: type[NotSent | Refused | Unconfirmed], complaint: str
) -> None:
    transport = AwsTransport(canned.url)
    canned.answers["SendMessageBatch"] = [answer]
    [result] = await sent(transport, *numbers(1))
    await transport.close()
    assert isinstance(result, kind)
    assert complaint in result.failure.message
    # It is the relay that tries again.
    assert len(canned.of("SendMessageBatch")) == 1


async def test_requests_have_ten_messages_and_a_megabyte_at_most(canned: CannedAws) -> None:
    transport = AwsTransport(canned.url)
    canned.answers["SendMessageBatch"] = [error("SomethingElse", 503)] * 5
    await sent(transport, *numbers(21), message("mail", b"x" * 600_000), message("mail", b"x" * 600_000))
    await transport.close()
    assert sorted(len(request["Entries"]) for request in canned.of("SendMessageBatch")) == [1, 2, 10, 10]
