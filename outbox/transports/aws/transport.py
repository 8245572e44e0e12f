"""SQS and SNS as a Transport: sends batches of ten to queues, or to a topic."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any

from botocore.exceptions import ClientError

from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, ServerKind
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.aws.client import (
    BATCH,
    DENIED,
    FIFO,
    MISSING,
    Aws,
    AwsOptions,
    check_template,
    code_of,
    destination_of,
    is_busy,
    sqs_name,
    text_of,
)
from outbox.transports.aws.entries import Entry, entry_of

RESERVE = timedelta(milliseconds=200)
"""Time of a batch's timeout that is left for its results: up to a quarter of it."""
LARGEST = 1024**2
"""Largest message in bytes, with its attributes. SQS takes as much in a request; a topic, only if it is configured so."""
LARGEST_FOR_SNS = 256 * 1024
"""Most bytes of several messages in one request to SNS, whose topics take at least that."""
AT_ONCE = 10
"""Requests that are in flight at once for one batch."""
CHECK_SUBSCRIPTIONS_AFTER = 60.0
"""Seconds for which a topic that had a subscription is taken to have one."""
PROBE = "outbox-probe"
"""The name of a queue that need not exist: an answer about it shows that SQS answers."""

QueueOf = Callable[[str], str]
"""Returns the queue for a routing key."""

_OF_A_MESSAGE = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidMessageContents",
        "InvalidParameter",
        "InvalidParameterException",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "MissingParameter",
        "ParameterValueInvalid",
    }
)
"""Codes of errors that say that a message is at fault."""


class AwsTransport:
    """Implements `outbox.ports.Transport` on SQS and SNS.

    `url` is `sqs://region?queue=…` or `sns://region/topic`. `queue` names the queue of a message: text, in which
    `{routing_key}` stands for the message's routing key, or a function from routing keys to queues. Default: that of the URL,
    or else the routing key. A dot in a routing key is a `-` in the name of a queue.

    Raises `ConfigurationError` for an option that is unknown or invalid.
    """

    label = ServerKind.AWS.value
    """The exchange of the queues that workers fill from SQS; see `outbox.transports.stored`."""

    def __init__(self, url: str, *, queue: str | QueueOf | None = None) -> None:
        self.options = AwsOptions.parse(url)
        self.guarantees = self.options.guarantees
        if queue is not None and self.options.service == "sns":
            raise ConfigurationError("queue is for sqs://: a topic of SNS sends to all of its queues")
        self._queue = self.options.name if queue is None else queue
        if not callable(self._queue) and self.options.service == "sqs":
            check_template(self._queue)
        self._url = url
        self._aws = Aws(self.options)
        self._urls: dict[str, str] = {}
        self._arn: str | None = None
        self._subscribed_until = 0.0

    @property
    def destination(self) -> str:
        """The region and the queue or topic, without secrets. Relays with the same text send to the same place."""
        queue = self._queue
        if callable(queue):
            queue = f"of {queue.__module__}.{getattr(queue, '__qualname__', type(queue).__qualname__)}"
        return destination_of(self._url, self.options, queue)

    @property
    def only_queue(self) -> str | None:
        """The one queue of all messages, if there is only one."""
        queue = self._queue
        is_one = self.options.service == "sqs" and not callable(queue) and ROUTING_KEY_IN_TOPIC not in queue
        return sqs_name(queue) if is_one and isinstance(queue, str) else None

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        with suppress(ClientError):  # it answers, and what it says is the result of each message
            await (self._aws.queue_url(self.only_queue or PROBE) if self.options.service == "sqs" else self._is_subscribed())

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`.

        After a timeout or a cancellation, AWS may still do what it has received. A FIFO queue drops the copy that is sent again
        within five minutes.
        """
        results, entries = self._encode(messages)
        patience = timeout - min(RESERVE, timeout / 4)
        missing = Failure("timeout", f"AWS confirmed nothing more within {patience.total_seconds():g} s")
        slots = asyncio.Semaphore(AT_ONCE)

        async def send_to(target: str, requests: Sequence[Mapping[int, Entry]]) -> None:
            # One after another: in a FIFO queue or topic they may have messages of the same group.
            for request in requests:
                async with slots:
                    results.update(await self._send(target, request))

        try:
            async with asyncio.timeout(patience.total_seconds()), asyncio.TaskGroup() as tasks:
                for target, of_target in entries.items():
                    requests = list(_requests(of_target, LARGEST if self.options.service == "sqs" else LARGEST_FOR_SNS))
                    for chain in [requests] if target.endswith(FIFO) else [[request] for request in requests]:
                        tasks.create_task(send_to(target, chain))
        except TimeoutError:
            pass
        return [results.get(index, NotSent(missing)) for index in range(len(messages))]

    async def has_queue(self, name: str) -> bool:
        """Whether a queue exists. Raises `BrokerUnavailableError`, also if AWS does not show it."""
        try:
            return await self._aws.queue_url(name) is not None
        except ClientError as error:
            raise BrokerUnavailableError(f"SQS does not show the queue {name!r}: {text_of(error)}") from error

    async def has_subscription(self) -> bool | None:
        """Whether the topic has a subscription; None if there is no topic. Raises the errors of `has_queue`."""
        try:
            return await self._is_subscribed()
        except ClientError as error:
            raise BrokerUnavailableError(f"SNS does not show the topic {self.options.name!r}: {text_of(error)}") from error

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._aws.close()

    def _encode(self, messages: Sequence[Message]) -> tuple[dict[int, SendResult], Mapping[str, Mapping[int, Entry]]]:
        """Returns the results of the messages that cannot be sent, and the entries of the others by target, by index."""
        results: dict[int, SendResult] = {}
        entries: defaultdict[str, dict[int, Entry]] = defaultdict(dict)
        for index, message in enumerate(messages):
            if message.target_queue is not None:
                results[index] = UNROUTABLE  # the topic would reach all of its queues
                continue
            try:
                entry, target = entry_of(message), self._target_of(message)
            except Exception as error:  # noqa: BLE001  a faulty function of the application must not stop other messages
                results[index] = Refused(Failure("unsendable", text_of(error)))
                continue
            if entry.size > LARGEST:
                text = f"the message has {entry.size:,} bytes with its properties: AWS takes {LARGEST:,}"
                results[index] = Refused(Failure("unsendable", text))
            else:
                entries[target][index] = entry
        return results, entries

    async def _is_subscribed(self) -> bool | None:
        if self._arn is None:
            self._arn = await self._aws.topic_arn()
        page: Mapping[str, str] = {}
        while True:
            try:
                answer = await self._aws.call("sns", "list_subscriptions_by_topic", TopicArn=self._arn, **page)
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise
            # Others have words there, such as PendingConfirmation and Deleted.
            if any(each["SubscriptionArn"].startswith("arn:") for each in answer["Subscriptions"]):
                return True
            if not answer.get("NextToken"):
                return False
            page = {"NextToken": answer["NextToken"]}

    def _target_of(self, message: Message) -> str:
        if self.options.service == "sns":
            return self.options.name
        queue, key = self._queue, message.routing_key
        name = queue(key) if callable(queue) else queue.replace(ROUTING_KEY_IN_TOPIC, key)
        if not isinstance(name, str):
            raise TypeError(f"{name!r:.100} is not the name of a queue")
        return sqs_name(name)

    async def _send(self, target: str, entries: Mapping[int, Entry]) -> Mapping[int, SendResult]:
        """Sends one request, and returns a result for each of its entries."""
        fifo = target.endswith(FIFO)
        try:
            address = await self._address_of(target)
            if address is None:
                return dict.fromkeys(entries, UNROUTABLE)
            if self.options.service == "sqs":
                sent = [_encoded(index, entry, text="MessageBody", fifo=fifo) for index, entry in entries.items()]
                answer = await self._aws.call("sqs", "send_message_batch", QueueUrl=address, Entries=sent)
            else:
                sent = [_encoded(index, entry, text="Message", fifo=fifo) for index, entry in entries.items()]
                answer = await self._aws.call("sns", "publish_batch", TopicArn=address, PublishBatchRequestEntries=sent)
        except BrokerUnavailableError as error:
            return dict.fromkeys(entries, NotSent(Failure("aws", str(error))))
        except ClientError as error:
            code = code_of(error)
            if code in MISSING:
                self._urls.pop(target, None)
                return dict.fromkeys(entries, UNROUTABLE)
            if code in _OF_A_MESSAGE and len(entries) > 1:
                # The whole request was refused because of one of them, and nothing of it was stored.
                results: dict[int, SendResult] = {}
                for index, entry in entries.items():
                    results |= await self._send(target, {index: entry})
                return results
            return dict.fromkeys(entries, self._result_of(code, text_of(error)))
        results = dict.fromkeys(entries, NotSent(Failure("aws", "AWS did not answer for this message")))
        results |= {int(each["Id"]): CONFIRMED for each in answer.get("Successful", ())}
        for each in answer.get("Failed", ()):
            code = str(each.get("Code", "")).rpartition(".")[2]
            text = f"{code}: {each.get('Message', '')}"
            at_fault = each.get("SenderFault", False) and not is_busy(code)
            results[int(each["Id"])] = self._result_of(code, text) if at_fault else NotSent(Failure(f"aws {code}", text))
        return results

    async def _address_of(self, target: str) -> str | None:
        """Returns the URL of a queue or the ARN of the topic; None if a message would reach nothing there."""
        if self.options.service == "sqs":
            if target not in self._urls:
                url = await self._aws.queue_url(target)
                if url is None:
                    return None
                self._urls[target] = url
            return self._urls[target]
        if monotonic() >= self._subscribed_until:
            # SNS confirms a message also if no queue is subscribed, and drops it.
            try:
                if not await self._is_subscribed():
                    return None
            except ClientError as error:
                if self._arn is None or code_of(error) not in DENIED:
                    raise
            self._subscribed_until = monotonic() + CHECK_SUBSCRIPTIONS_AFTER
        return self._arn

    def _result_of(self, code: str, text: str) -> SendResult:
        failure = Failure(f"aws {code}", text)
        if code in _OF_A_MESSAGE:
            return Refused(failure)
        # An answer about the queue: others may be fine. There is only one topic.
        return Unconfirmed(failure) if self.options.service == "sqs" else NotSent(failure)


def _requests(entries: Mapping[int, Entry], most_bytes: int) -> Iterator[Mapping[int, Entry]]:
    """Cuts entries into requests, each of at most ten, and of `most_bytes` unless one entry alone has more."""
    request: dict[int, Entry] = {}
    size = 0
    for index, entry in entries.items():
        if request and (len(request) == BATCH or size + entry.size > most_bytes):
            yield request
            request, size = {}, 0
        request[index] = entry
        size += entry.size
    if request:
        yield request


def _encoded(index: int, entry: Entry, *, text: str, fifo: bool) -> Mapping[str, Any]:
    """Returns an entry of a request, whose field for the body is `text`."""
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in entry.attributes.items()}
    order = {"MessageGroupId": entry.group, "MessageDeduplicationId": entry.deduplication_id} if fifo else {}
    return {"Id": str(index), text: entry.text, "MessageAttributes": attributes, **order}
