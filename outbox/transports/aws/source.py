"""SQS as a Source: receives messages from a queue, which is subscribed to a topic of SNS, and deletes those that are stored."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from outbox.core.topics import matches
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, ServerKind
from outbox.engine.tasks import in_background
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import Received, Subscription
from outbox.transports.aws.client import (
    BATCH,
    DENIED,
    FIFO,
    MISSING,
    Aws,
    AwsOptions,
    batches,
    code_of,
    destination_of,
    sqs_name,
    text_of,
)
from outbox.transports.aws.entries import ROUTING_KEY_ATTRIBUTE, message_of

LONGEST_FETCH = timedelta(seconds=1)
"""Longest wait of one fetch. A request for messages may wait longer."""
CLOSE_PATIENCE = timedelta(seconds=3)
"""How long the end of a read waits for an open request, and for the return of what it has: both would stay invisible."""
MOST_REQUESTS = 10
"""Most requests for messages in one fetch, once the first one was full."""
RETENTION = timedelta(days=14)
"""How long a queue that a worker creates keeps messages: the longest that SQS offers."""


class AwsSource:
    """Implements `outbox.ports.Source` on SQS: a queue of Outbox is a queue of SQS.

    `url` is that of `outbox.transports.aws.AwsTransport`. With `sns://` a worker creates its queue and the subscription to
    the topic; with `sqs://` the queue alone. Raises `ConfigurationError` for an option that is unknown or invalid.
    """

    label = ServerKind.AWS.value

    def __init__(self, url: str) -> None:
        self.options = AwsOptions.parse(url)
        self.destination = destination_of(url, self.options, self.options.name)
        self.guarantees = self.options.guarantees
        self._aws = Aws(self.options)
        self._readers: dict[str, str] = {}

    @asynccontextmanager
    async def read(self, subscription: Subscription) -> AsyncIterator["AwsReader"]:
        """See `outbox.ports.Source.read`. A new queue begins with the messages that are sent after it was created.

        Raises `TopologyError` for an ordered queue that is not FIFO, for two queues whose names in SQS are the same, and with
        `sqs://` for a binding key that is not that of the queue's messages.
        """
        name = queue_name(
            self.options, queue=subscription.queue, binding_key=subscription.binding_key, ordered=subscription.ordered
        )
        if self._readers.setdefault(name, subscription.queue) != subscription.queue:
            raise TopologyError(
                f"the queues {self._readers[name]!r} and {subscription.queue!r} have the same name in SQS, {name!r}, and would "
                "receive each other's messages: rename one of them"
            )
        reader = AwsReader(self._aws, self.options, subscription, name)
        try:
            await reader.open()
            async with in_background(reader.keep()):
                yield reader
        finally:
            await reader.close()

    async def close(self) -> None:
        """See `outbox.ports.Source.close`."""
        await self._aws.close()


class AwsReader:
    """Implements `outbox.ports.Reader` for one queue of SQS."""

    def __init__(self, aws: Aws, options: AwsOptions, subscription: Subscription, name: str) -> None:
        self._aws = aws
        self._options = options
        self._subscription = subscription
        self._name = name
        key = subscription.binding_key
        self._default_key = subscription.queue if "*" in key or "#" in key else key
        self._url: str | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._waiting: deque[Received] = deque()
        self._held: dict[str, None] = {}
        """Receipts of messages that are not deleted yet."""
        self._attempts: dict[int, tuple[str, float]] = {}
        """Ids of requests that are open, or whose answers are lost, and when they were made, by their numbers in a fetch."""

    async def open(self) -> None:
        """Creates the queue, the topic and the subscription that are missing, if the URL allows that."""
        options, arn = self._options, None
        try:
            if options.service == "sns" and options.create:
                arn = await self._aws.topic_arn()
                if await self._aws.topic_attributes(arn) is None:
                    if options.account is not None:
                        raise TopologyError(
                            f"SNS has no topic {options.name!r} in the account {options.account}: create it there"
                        )
                    how = {"Attributes": {"FifoTopic": "true"}} if options.is_fifo else {}
                    await self._aws.call("sns", "create_topic", Name=options.name, **how)
            url = await self._aws.queue_url(self._name)
            if url is None and options.create and (options.service == "sns" or options.account is None):
                attributes = {
                    "MessageRetentionPeriod": f"{RETENTION.total_seconds():.0f}",
                    "VisibilityTimeout": str(options.visibility_timeout),
                    **({"FifoQueue": "true"} if self._name.endswith(FIFO) else {}),
                }
                answer = await self._aws.call("sqs", "create_queue", QueueName=self._name, Attributes=attributes)
                url = str(answer["QueueUrl"])
            if url is not None and arn is not None:
                await self._subscribe(url, arn)
        except ClientError as error:
            if code_of(error) == "QueueDeletedRecently":
                raise BrokerUnavailableError(f"the queue {self._name!r} was just deleted: {text_of(error)}") from error
            raise TopologyError(
                f"the worker cannot prepare the queue {self._name!r} in SQS: {text_of(error)}. Grant it the permission, or "
                "create the queue and its subscription, and add ?create=false to the URL"
            ) from error
        if url is None:
            raise TopologyError(f"SQS has no queue {self._name!r}: create it, or leave out create=false and account")
        self._url = url

    async def fetch(self, limit: int) -> Sequence[Received]:
        """See `outbox.ports.Reader.fetch`."""
        if not self._waiting:
            if self._receiving is None:
                self._receiving = asyncio.create_task(self._receive(limit))
            # SQS may give messages to a request that was cancelled. So it goes on, for the next call or for `close`.
            done, _ = await asyncio.wait([self._receiving], timeout=LONGEST_FETCH.total_seconds())
            if done:
                receiving, self._receiving = self._receiving, None
                receiving.result()
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    async def acknowledge(self, received: Sequence[Received]) -> None:
        """See `outbox.ports.Reader.acknowledge`. Deletes the messages."""
        await self._delete([str(each.token) for each in received])

    async def keep(self) -> None:
        """Until it is cancelled, prolongs the time in which SQS gives the messages of this reader to no other one."""
        while True:
            await asyncio.sleep(self._options.visibility_timeout / 3)
            with suppress(BrokerUnavailableError, TopologyError):
                await self._set_visibility(self._options.visibility_timeout)

    async def close(self) -> None:
        """Lets others receive at once what was not acknowledged."""
        if (receiving := self._receiving) is not None:
            try:
                await asyncio.wait([receiving], timeout=CLOSE_PATIENCE.total_seconds())
            finally:
                receiving.cancel()
            await asyncio.wait([receiving])
            if not receiving.cancelled():
                receiving.exception()  # it is of no use any more, and asyncio logs one that is not looked at
        # Otherwise others receive it after the visibility timeout.
        with suppress(BrokerUnavailableError, TopologyError, TimeoutError):
            async with asyncio.timeout(CLOSE_PATIENCE.total_seconds()):
                await self._set_visibility(0)

    # --- topology --------------------------------------------------------------------------------------------------------

    async def _subscribe(self, url: str, topic: str) -> None:
        """Lets the topic send to the queue, and subscribes the queue to what its binding key matches."""
        names = ["QueueArn", "Policy"]
        answer = await self._aws.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=names)
        queue, policy = answer["Attributes"]["QueueArn"], answer["Attributes"].get("Policy", "")
        if f'"{topic}"' not in policy:  # in its quotes: another topic's ARN may begin with this one
            document = json.loads(policy or '{"Version": "2012-10-17", "Statement": []}')
            allowed = {
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue,
                "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
            }
            others = document.get("Statement", [])
            document["Statement"] = [*(others if isinstance(others, list) else [others]), allowed]
            await self._aws.call("sqs", "set_queue_attributes", QueueUrl=url, Attributes={"Policy": json.dumps(document)})
        policy = json.dumps(filter_policy(self._subscription.binding_key))
        wanted = {"RawMessageDelivery": "true", "FilterPolicy": policy}
        subscription = await self._subscription_of(queue, topic, wanted)
        answer = await self._aws.call("sns", "get_subscription_attributes", SubscriptionArn=subscription)
        given = {"FilterPolicy": "{}"} | answer["Attributes"]
        for name, value in wanted.items():
            if json.loads(given.get(name, "null")) != json.loads(value):
                await self._aws.call(
                    "sns", "set_subscription_attributes", SubscriptionArn=subscription, AttributeName=name, AttributeValue=value
                )

    async def _subscription_of(self, queue: str, topic: str, wanted: Mapping[str, str]) -> str:
        """Returns the ARN of the queue's subscription to the topic, which it creates if it is missing."""
        # No filter at all is written as none: SNS refuses an empty one for a new subscription.
        attributes = {name: value for name, value in wanted.items() if value != "{}"}
        try:
            answer = await self._aws.call(
                "sns",
                "subscribe",
                TopicArn=topic,
                Protocol="sqs",
                Endpoint=queue,
                Attributes=attributes,
                ReturnSubscriptionArn=True,
            )
            return str(answer["SubscriptionArn"])
        except ClientError as error:
            if "already exists" not in text_of(error):
                raise
        token: Mapping[str, str] = {}
        while True:
            answer = await self._aws.call("sns", "list_subscriptions_by_topic", TopicArn=topic, **token)
            for each in answer["Subscriptions"]:
                if each["Endpoint"] == queue:
                    return str(each["SubscriptionArn"])
            if not answer.get("NextToken"):
                raise BrokerUnavailableError(f"SNS does not list the subscription of the queue {self._name!r}")
            token = {"NextToken": answer["NextToken"]}

    # --- messages --------------------------------------------------------------------------------------------------------

    async def _receive(self, limit: int) -> None:
        """Waits for messages. If there are many, several requests receive more of them."""
        lost = (self._request(0, number) for number in tuple(self._attempts) if number)
        first, *_ = await asyncio.gather(self._request(self._options.wait_time), *lost, return_exceptions=True)
        if isinstance(first, BaseException):
            raise first
        if first < BATCH:
            return
        more = min(limit // BATCH, MOST_REQUESTS) - 1
        # What some of them receive is not lost if others fail. A group of a FIFO queue is only ever in one of them.
        await asyncio.gather(*(self._request(0, number + 1) for number in range(more)), return_exceptions=True)

    async def _request(self, wait: int, number: int = 0) -> int:
        """Takes the messages of one request, and returns how many there are."""
        once: Mapping[str, str] = {}
        if self._name.endswith(FIFO):
            # With the id of a request whose answer was lost, SQS gives its messages again. Without, they and all later ones of
            # their groups would stay invisible.
            id_, made = self._attempts.get(number, ("", 0.0))
            if not id_ or monotonic() - made > self._options.visibility_timeout:
                self._attempts[number] = id_, made = uuid4().hex, monotonic()
            once = {"ReceiveRequestAttemptId": id_}
        answer = await self._call(
            "receive_message",
            MaxNumberOfMessages=BATCH,
            WaitTimeSeconds=wait,
            VisibilityTimeout=self._options.visibility_timeout,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["SentTimestamp", "MessageGroupId"],
            **once,
        )
        self._attempts.pop(number, None)
        others = []
        for each in answer.get("Messages", ()):
            receipt = each["ReceiptHandle"]
            message = message_of(each, queue=self._name, routing_key=self._default_key)
            # A topic sends more than the binding key matches if its filter cannot express that. With `sqs://`, what is in
            # the queue is meant for this consumer.
            is_meant = self._options.service == "sqs" or message.routing_key == self._default_key
            if is_meant or matches(self._subscription.binding_key, message.routing_key):
                self._held[receipt] = None
                self._waiting.append(Received(message, receipt))
            else:
                others.append(receipt)
        if others:
            await self._delete(others)
        return len(answer.get("Messages", ()))

    async def _delete(self, receipts: Sequence[str]) -> None:
        failures = []
        for answer in await asyncio.gather(
            *(
                self._call(
                    "delete_message_batch",
                    Entries=[{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(batch)],
                )
                for batch in batches(receipts)
            )
        ):
            # A receipt that SQS does not know any more: another reader has the message.
            failures += [each for each in answer.get("Failed", ()) if not each.get("SenderFault", False)]
        if failures:
            raise BrokerUnavailableError(f"SQS does not delete messages: {failures[0].get('Message') or failures[0]['Code']}")
        for receipt in receipts:
            self._held.pop(receipt, None)

    async def _set_visibility(self, seconds: int) -> None:
        async def change(batch: Sequence[str]) -> None:
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
                for number, receipt in enumerate(batch)
            ]
            answer = await self._call("change_message_visibility_batch", Entries=entries)
            for each in answer.get("Failed", ()):
                if each.get("SenderFault", False):
                    self._held.pop(batch[int(each["Id"])], None)  # deleted, or with another reader by now

        held = batches(tuple(self._held)) if self._url is not None else ()
        for result in await asyncio.gather(*map(change, held), return_exceptions=True):
            if result is not None:
                raise result

    async def _call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Calls an operation on the queue, which is opened again if it was gone. Raises `BrokerUnavailableError`."""
        if self._url is None:
            await self.open()
        try:
            return await self._aws.call("sqs", operation, QueueUrl=self._url, **parameters)
        except ClientError as error:
            if code_of(error) in MISSING:
                self._url = None
            why = "SQS denies access to" if code_of(error) in DENIED else "SQS refuses a request for"
            raise BrokerUnavailableError(f"{why} the queue {self._name!r}: {text_of(error)}") from error


def queue_name(options: AwsOptions, *, queue: str, binding_key: str, ordered: bool) -> str:
    """Returns the name of a queue in SQS. Raises `TopologyError` if the queue cannot have all messages of its binding key."""
    only_queue = options.service == "sqs" and ROUTING_KEY_IN_TOPIC not in options.name
    if only_queue and binding_key != "#":
        raise TopologyError(
            f"all messages of {options.name!r} reach the queue {queue!r}, also those that {binding_key!r} does not match: "
            "bind it with '#', or send by a topic, as sns://region/topic"
        )
    if options.service == "sqs" and not only_queue and ("*" in binding_key or "#" in binding_key):
        raise TopologyError(
            f"the binding key {binding_key!r} of the queue {queue!r} has wildcards, but each routing key has its own queue: "
            "send by a topic, as sns://region/topic, or all messages to one queue, as ?queue=events"
        )
    try:
        name = sqs_name(queue)
        if options.is_fifo and not name.endswith(FIFO):
            name = sqs_name(f"{queue}{FIFO}")
        sent_to = sqs_name(options.name.replace(ROUTING_KEY_IN_TOPIC, binding_key)) if options.service == "sqs" else name
    except ValueError as error:
        raise TopologyError(f"the queue {queue!r} with the binding key {binding_key!r} cannot be in SQS: {error}") from error
    if sent_to != name:
        raise TopologyError(
            f"messages of {binding_key!r} are sent to {sent_to!r}, which is not the queue {queue!r}: write queue={sent_to!r} "
            "in the consumer, or send by a topic, as sns://region/topic, which several queues can be subscribed to"
        )
    if ordered and not name.endswith(FIFO):
        raise TopologyError(
            f"the queue {queue!r} is ordered, and {name!r} of SQS is not: use a topic or a queue whose name ends in {FIFO}"
        )
    return name


def filter_policy(binding_key: str) -> Mapping[str, Any]:
    """Returns a filter for a subscription that contains all that `binding_key` matches: a routing key, a prefix, or all."""
    words = binding_key.split(".")
    wild = next((number for number, word in enumerate(words) if word in ("*", "#")), None)
    if wild is None:
        return {ROUTING_KEY_ATTRIBUTE: [binding_key]}
    if wild == 0:
        return {}
    before = ".".join(words[:wild])
    # `#` also stands for no word at all.
    also = [before] if words[wild] == "#" else []
    return {ROUTING_KEY_ATTRIBUTE: [*also, {"prefix": f"{before}."}]}
