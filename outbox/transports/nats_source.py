"""NATS JetStream as a Source: fetches messages through a durable pull consumer, and acknowledges those that are stored."""

import asyncio
import json
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from nats.aio.subscription import Subscription as NatsSubscription
from nats.errors import Error as NatsError

from outbox.core import topics
from outbox.core.codec import RESERVED_PREFIX
from outbox.core.envelope import CONTENT_TYPE, JSON_HEADERS, decode_envelope, routing_key_of
from outbox.core.message import Message
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, nats_parameter, nats_subject
from outbox.engine.tasks import in_background
from outbox.errors import BrokerUnavailableError, ConfigurationError, TopologyError
from outbox.ports import Received, Subscription
from outbox.transports.nats import (
    CONNECT_TIMEOUT,
    DEDUPLICATION_ID,
    GUARANTEES,
    LABEL,
    SERVERS_HEADERS,
    NatsConnection,
    NatsLink,
    NoAnswerError,
    checked_subject,
)

ACK_WAIT = timedelta(seconds=30)
"""After this time without an acknowledgement or a sign of its reader, NATS delivers a message again."""
MOST_UNACKNOWLEDGED = 10_000
"""Most messages that all workers of a queue have fetched and not stored yet."""
ORDERED_BATCH = 200
"""The same for an ordered queue. One request can fetch all of them."""
PATIENCE = timedelta(milliseconds=500)
"""How long a request for messages stays at the server."""
GRACE = timedelta(seconds=2)
"""How long after its end a request is taken as lost if the server has not said that it ended."""
CHECKS = 5
CHECK_AGAIN = timedelta(milliseconds=20)
STAND_BY = timedelta(milliseconds=400)
"""Mean pause of a worker of an ordered queue while another one reads."""

_SEVERAL_FILTERS = (2, 10)
"""The first version of the server whose consumers may have several filters."""
_FILTER_NOT_IN_STREAM = 10093
"""The error of a server before 2.10 for a filter that matches more than the stream has."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAK = b"-NAK"
_IN_PROGRESS = b"+WPI"


class NatsSource:
    """Implements `outbox.ports.Source` on JetStream. A queue is a durable consumer, which all its workers share.

    `url` and `options` are those of `NatsTransport`; a parameter `stream` names the stream, if several have the subjects.
    `subject` is text, in which `{routing_key}` stands for the routing key. Creates consumers, and no streams.

    Raises `ConfigurationError` for an option that is unknown, or reserved because guarantees depend on it.
    """

    label = LABEL
    guarantees = GUARANTEES

    def __init__(self, url: str, *, subject: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        chosen = checked_subject(nats_subject(url) if subject is None else subject)
        if not isinstance(chosen, str):
            raise ConfigurationError(
                "a worker needs the subject as text: it reads from all subjects that its binding key matches"
            )
        self._subject = chosen
        self._stream = nats_parameter(url, "stream")
        self._link = NatsLink(url, options)

    @asynccontextmanager
    async def read(self, subscription: Subscription) -> AsyncIterator["NatsReader"]:
        """See `outbox.ports.Source.read`."""
        reader = NatsReader(self._link, subscription, self._subject, self._stream)
        try:
            await reader.open()
            async with in_background(reader.keep()):
                yield reader
        finally:
            await reader.close()

    async def close(self) -> None:
        """See `outbox.ports.Source.close`."""
        await self._link.close()


class _Token(NamedTuple):
    stream: str
    sequence: int
    stored_at: int
    """In nanoseconds since 1970."""
    reply: bytes
    """Where to acknowledge it, whatever the connection."""

    @classmethod
    def of(cls, reply: bytes) -> "_Token":
        """Reads the subject for the acknowledgement. Servers with domains put two words before the stream."""
        words = reply.decode().split(".")
        stream, _consumer, _deliveries, sequence, _number, stored_at = words[2:8] if len(words) == 9 else words[4:10]
        return cls(stream, int(sequence), int(stored_at), reply)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A message as it arrived."""

    token: _Token
    subject: str
    body: bytes
    headers: bytes | None
    arrived: float


class NatsReader:
    """Implements `outbox.ports.Reader`. Of an ordered queue, only the messages of one reader at a time are unacknowledged."""

    def __init__(self, link: NatsLink, subscription: Subscription, subject: str, stream: str | None) -> None:
        self._link = link
        self._subscription = subscription
        self._subject = subject
        self._stream = stream
        self._consumer = consumer_name(subscription.queue)
        self._filtered: Sequence[str] = ()
        """The filter of the consumer when it was created, as binding keys. Empty if it has no filter."""
        self._pull: _Pull | None = None
        self._unacknowledged: dict[int, _Token] = {}
        self._reads = False  # of an ordered queue: the last messages were all that were unacknowledged

    async def open(self) -> None:
        """Creates the consumer unless it exists. Raises `BrokerUnavailableError`, and `TopologyError` without its stream."""
        await self._open_pull()

    async def fetch(self, limit: int) -> Sequence[Received]:
        """See `outbox.ports.Reader.fetch`."""
        pull = self._pull
        if pull is None or pull.is_over:
            pull = await self._open_pull()
        try:
            if self._subscription.ordered:
                fetched = await self._fetch_in_order(pull, limit)
            else:
                fetched = self._taken(pull, limit) if await pull.wait(limit) else ()
            received: list[Received] = []
            others: list[Received] = []
            for each in fetched:
                message = message_of(each, self._subject)
                # What the filter does not match came by that of a worker with a newer binding key, for which it would be lost.
                matches = topics.matches(self._subscription.binding_key, message.routing_key) or (
                    len(self._filtered) > 0 and not any(topics.matches(key, each.subject) for key in self._filtered)
                )
                (received if matches else others).append(Received(message, each.token))
            # Acknowledged here, because they are never stored: NATS would deliver them again and again.
            if others:
                await self.acknowledge(others)
        except BaseException:
            # Others can have them at once, rather than after `ACK_WAIT`.
            self._give_back(pull)
            raise
        return received

    async def acknowledge(self, received: Sequence[Received]) -> None:
        """See `outbox.ports.Reader.acknowledge`. Waits until the server has the acknowledgements."""
        tokens = [each.token for each in received if isinstance(each.token, _Token)]
        if tokens:
            connection = await self._link.connection(CONNECT_TIMEOUT.total_seconds())
            await connection.acknowledge([token.reply for token in tokens])
            for token in tokens:
                self._unacknowledged.pop(token.sequence, None)

    async def keep(self) -> None:
        """Until it is cancelled, shows that this reader still has what it returned, so no other one gets it."""
        while True:
            await asyncio.sleep(ACK_WAIT.total_seconds() / 3)
            if self._unacknowledged:
                with suppress(BrokerUnavailableError):  # then NATS delivers them again after `ACK_WAIT`
                    connection = await self._link.connection(CONNECT_TIMEOUT.total_seconds())
                    connection.write((token.reply, _IN_PROGRESS) for token in self._unacknowledged.values())

    async def close(self) -> None:
        """Returns what was not acknowledged to the consumer."""
        pull, self._pull = self._pull, None
        if pull is not None:
            await pull.end()
            self._give_back(pull)

    async def _open_pull(self) -> "_Pull":
        connection = await self._link.connection(CONNECT_TIMEOUT.total_seconds())
        if self._pull is not None:
            self._pull.fetched.clear()  # they are fetched again
            await self._pull.end()
        filters = filter_subjects(self._subscription.binding_key, self._subject)
        stream = self._stream or await self._find_stream(connection, filters)
        await self._create_consumer(connection, stream, filters)
        pull = self._pull = _Pull(connection, stream, self._consumer)
        await pull.open()
        self._reads = False
        return pull

    async def _find_stream(self, connection: NatsConnection, filters: Sequence[str]) -> str:
        streams = {name for subject in filters for name in await connection.streams_of(subject)}
        if not streams:
            raise TopologyError(
                f"no stream stores the subjects {' and '.join(filters)} of the queue {self._subscription.queue!r}: create one, "
                "for example with `nats stream add`, and start the worker again"
            )
        if len(streams) > 1:
            raise TopologyError(
                f"the streams {', '.join(sorted(streams))} store the subjects {' and '.join(filters)} of the queue "
                f"{self._subscription.queue!r}: name one of them, as ?stream= in the URL of the broker"
            )
        return streams.pop()

    async def _create_consumer(self, connection: NatsConnection, stream: str, filters: Sequence[str]) -> None:
        config: dict[str, Any] = {
            "durable_name": self._consumer,
            "description": f"the queue {self._subscription.queue} of Outbox"[:4_000],
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(ACK_WAIT / timedelta(microseconds=1)) * 1_000,
            "max_ack_pending": ORDERED_BATCH if self._subscription.ordered else MOST_UNACKNOWLEDGED,
            # Which messages have failed for good is decided after they are stored.
            "max_deliver": -1,
            "replay_policy": "instant",
        }
        if len(filters) == 1:
            filtered = config | {"filter_subject": filters[0]}
        elif connection.server_version >= _SEVERAL_FILTERS:
            filtered = config | {"filter_subjects": list(filters)}
        else:
            filtered = config  # then it gets everything, and `fetch` acknowledges what does not match
        name = f"CONSUMER.DURABLE.CREATE.{stream}.{self._consumer}"
        answer = await connection.ask(name, {"stream_name": stream, "config": filtered})
        if answer.get("error", {}).get("err_code") == _FILTER_NOT_IN_STREAM:
            filtered = config
            answer = await connection.ask(name, {"stream_name": stream, "config": config})
        self._filtered = () if filtered is config else [each.replace(">", "*.#") for each in filters]
        if (problem := answer.get("error")) is not None:
            raise TopologyError(
                f"the consumer {self._consumer!r} of the stream {stream!r} cannot be created or changed for the queue "
                f"{self._subscription.queue!r}: {problem.get('description')}"
            )

    async def _fetch_in_order(self, pull: "_Pull", limit: int) -> Sequence["_Fetched"]:
        """Fetches messages only while no other reader has any, so that none is stored before an earlier one."""
        most = limit
        if not self._reads:
            # Another reader would lose messages to this request. One that was killed delivers nothing, and is not waited for.
            before, _ = await pull.state()
            await asyncio.sleep(STAND_BY.total_seconds() * random.uniform(0.5, 1.5))  # noqa: S311  it spreads readers
            delivered, unacknowledged = await pull.state()
            if delivered != before:
                return ()
            self._reads = True
            most = max(limit, unacknowledged)  # one request, for all that a dead reader had
        if not await pull.wait(min(most, ORDERED_BATCH)):
            return ()
        self._reads = await self._has_all(pull)
        if not self._reads:
            self._give_back(pull)
            return ()
        pull.fetched = deque(sorted(pull.fetched, key=lambda each: each.token.sequence))
        return self._taken(pull, limit)

    async def _has_all(self, pull: "_Pull") -> bool:
        """Whether all that is unacknowledged is here. Then other readers have stored what they had."""
        for _ in range(CHECKS):
            arrived = pull.arrived
            try:
                _, unacknowledged = await pull.state()
            except NoAnswerError:
                if pull.arrived == arrived:
                    raise
                return await self._has_all(pull)  # the answer comes behind the messages that are still arriving
            if unacknowledged == len(self._unacknowledged) + len(pull.fetched):
                return True
            await asyncio.sleep(CHECK_AGAIN.total_seconds())
        return False

    def _taken(self, pull: "_Pull", limit: int) -> Sequence["_Fetched"]:
        fetched = pull.take(limit)
        self._unacknowledged |= {each.token.sequence: each.token for each in fetched}
        return fetched

    def _give_back(self, pull: "_Pull") -> None:
        tokens = [*self._unacknowledged.values(), *(each.token for each in pull.take(len(pull.fetched)))]
        self._unacknowledged.clear()
        with suppress(BrokerUnavailableError):  # then NATS delivers them again after `ACK_WAIT`
            pull.connection.write((token.reply, _NAK) for token in tokens)


class _Pull:
    """Requests for messages over one connection. At most one is open at a time."""

    def __init__(self, connection: NatsConnection, stream: str, consumer: str) -> None:
        self.connection = connection
        self.fetched: deque[_Fetched] = deque()
        self.arrived = 0  # so many messages in all
        self.is_over = False
        self._stream = stream
        self._consumer = consumer
        self._inbox = b""
        self._subscription: NatsSubscription | None = None
        self._left = 0  # of the open request
        self._ends = 0.0
        self._arriving = 0  # bytes of an incomplete message when the end was reached
        self._changed = asyncio.Event()

    async def open(self) -> None:
        """Subscribes to what is requested."""
        inbox = self.connection.new_inbox()
        self._inbox = inbox.encode()
        self._subscription = await self.connection.take(inbox, self._take)

    async def wait(self, limit: int) -> bool:
        """Waits for messages, and requests up to `limit` if no request is open. Returns whether there are any.

        Raises `BrokerUnavailableError` if the connection is lost, or the consumer is gone.
        """
        loop = asyncio.get_running_loop()
        if self.fetched and self.fetched[0].arrived < loop.time() - ACK_WAIT.total_seconds() / 2:
            self.fetched.clear()  # by the time that they are stored, NATS delivers them again
        if not self.fetched and not self._left:
            content = json.dumps({"batch": limit, "expires": int(PATIENCE / timedelta(microseconds=1)) * 1_000}).encode()
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}".encode()
            self.connection.write([(subject, content)], answer=self._inbox)
            self._left, self._ends = limit, loop.time() + (PATIENCE + GRACE).total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._ends):
                while not self.fetched and self._left:
                    self._changed.clear()
                    await self._changed.wait()
        if self._left and loop.time() >= self._ends:
            arriving, self._arriving = self._arriving, self.connection.arriving
            if self._arriving and self._arriving != arriving:
                self._ends = loop.time() + GRACE.total_seconds()  # a large message, over a slow network
                return False
            self._left = 0
            # The request ended without a word: nothing else would show that the connection is dead.
            await self.connection.answers(loop.time() + GRACE.total_seconds())
        if self.is_over or self.connection.is_lost:
            self.is_over = True
            raise BrokerUnavailableError(f"the consumer {self._consumer!r} of the stream {self._stream!r} does not answer")
        return bool(self.fetched)

    def take(self, limit: int) -> list[_Fetched]:
        """Returns up to `limit` messages that arrived, in their order."""
        return [self.fetched.popleft() for _ in range(min(limit, len(self.fetched)))]

    async def state(self) -> tuple[int, int]:
        """Returns how many messages of the queue were delivered so far, and how many all readers have not acknowledged."""
        info = await self.connection.ask(f"CONSUMER.INFO.{self._stream}.{self._consumer}", {})
        return int(info.get("delivered", {}).get("consumer_seq", 0)), int(info.get("num_ack_pending", 0))

    async def end(self) -> None:
        """Waits for the end of the open request, so that nothing is delivered to a reader that is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout((PATIENCE + GRACE).total_seconds()):
                while self._left and not self.connection.is_lost:
                    self._changed.clear()
                    await self._changed.wait()
        self.is_over = True
        if self._subscription is not None:
            with suppress(NatsError, OSError):
                await self.connection.leave(self._subscription)

    def _take(self, subject: bytes, reply: bytes, body: bytes, headers: bytes | None) -> None:
        self._changed.set()
        if subject == self._inbox:
            # The end of the request: there are no messages, its time is over, or the consumer is gone.
            self._left = 0
            status = b"" if headers is None else headers[len(b"NATS/1.0 ") :]
            self.is_over = self.is_over or status.startswith((b"503", b"409 Consumer Deleted"))
            return
        self._left = max(self._left - 1, 0)
        if reply.startswith(b"$JS.ACK."):
            now = asyncio.get_running_loop().time()
            self.arrived += 1
            self._ends = now + (PATIENCE + GRACE).total_seconds()  # large ones may take longer to arrive
            self.fetched.append(_Fetched(_Token.of(reply), subject.decode(errors="replace"), body, headers, now))


def consumer_name(queue: str) -> str:
    """Returns the name of a queue's consumer. Characters that NATS does not allow become `=2E` and the like."""
    return _NOT_IN_NAMES.sub(lambda match: "".join(f"={byte:02X}" for byte in match[0].encode()), queue)


def filter_subjects(binding_key: str, subject: str) -> list[str]:
    """Returns one or two subjects with the wildcards of NATS that contain all that `binding_key` matches."""
    words: list[str] = []
    for word in subject.replace(ROUTING_KEY_IN_TOPIC, binding_key).split("."):
        if word == "#":
            # NATS has `>` for one word or more, and only at the end.
            more = ".".join([*words, ">"])
            ends = subject.endswith(ROUTING_KEY_IN_TOPIC) and binding_key.endswith("#") and binding_key.count("#") == 1
            return [".".join(words), more] if ends and words else [more]
        words.append("*" if "*" in word or "#" in word else word)
    return [".".join(words)]


def message_of(fetched: _Fetched, subject: str) -> Message:
    """Returns the message, also of a publisher that is not Outbox: then its id is that of the stream. Never raises."""
    token = fetched.token
    lines = (line.partition(":") for line in (fetched.headers or b"").decode(errors="replace").split("\r\n")[1:])
    named: dict[str, Any] = {name.strip(): value.strip() for name, separator, value in lines if separator}
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        for name in json.loads(named.get(JSON_HEADERS, "[]")):
            named[name] = json.loads(named[name])

    published_as = named.get(DEDUPLICATION_ID)
    content_type = next((name for name in named if name.lower() == CONTENT_TYPE), "")
    return Message(
        body=fetched.body,
        content_type=str(named[content_type]) if named.get(content_type) else None,
        headers={
            name: value
            for name, value in named.items()
            if not name.lower().startswith((RESERVED_PREFIX, SERVERS_HEADERS)) and name != content_type
        },
        **decode_envelope(
            named,
            id_=published_as if isinstance(published_as, str) and published_as else f"nats:{token.stream}:{token.sequence}",
            routing_key=routing_key_of(fetched.subject, subject),
            created_at=datetime.fromtimestamp(token.stored_at / 1_000_000_000, UTC),
        ),
    )
