"""Kafka as a Source: reads records as members of a consumer group, and commits the offsets of those that are stored."""

import asyncio
import json
import logging
import re
import threading
from base64 import b64encode
from binascii import hexlify
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, TopicPartition

from outbox.core import topics
from outbox.core.codec import (
    RESERVED_PREFIX,
    decode_tracking_ids,
)
from outbox.core.envelope import CONTENT_TYPE, JSON_HEADERS, decode_envelope, routing_key_of
from outbox.core.message import Message
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, kafka_topic
from outbox.errors import BrokerUnavailableError, ConfigurationError, MalformedMessageError
from outbox.ports import Received, Subscription
from outbox.transports.kafka import (
    CONNECT_TIMEOUT,
    GUARANTEES,
    LABEL,
    NO_TOPIC,
    PROBE_TOPIC,
    TOPIC,
    TopicOf,
    checked_topic,
    client_properties,
    text_of,
)

PATIENCE = timedelta(seconds=1)
"""How long `fetch` waits for a record."""
SLICE_SECONDS = 0.1
"""How long one call of librdkafka waits, and with it the end of a reader."""
_CALLBACK_SECONDS = 0.02
"""How long a reader that leaves its group waits for another callback."""
CLOSE_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a reader to leave its group. A later one is left by Kafka's session timeout."""
KEEP_ALIVE = timedelta(seconds=30)
"""A reader that is not asked for records calls librdkafka this often: after `max.poll.interval.ms` Kafka would exclude it."""

_PROPERTIES: Mapping[str, Any] = {
    "client.id": "outbox-worker",
    "auto.offset.reset": "earliest",
    # A worker that starts or stops moves only some partitions. With eager strategies, all workers would stop for a moment.
    "partition.assignment.strategy": "cooperative-sticky",
    # How soon a new topic is found that a binding key with wildcards matches.
    "topic.metadata.refresh.interval.ms": 30_000,
    # Longest pause before a reader connects again. With the default of 10 s it would notice later that brokers are back.
    "reconnect.backoff.max.ms": 5_000,
    # Kafka's own topics, such as that of the offsets, are not for `#`.
    "topic.blacklist": "^__",
    # Records that wait in the memory of each reader, in kilobytes.
    "queued.max.messages.kbytes": 16_384,
    "log_level": 2,
}
"""Properties of librdkafka that a URL or an argument may replace."""
# Offsets are committed by us, when records are stored: by itself, the client would commit what was only read.
_GUARANTEES: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "allow.auto.create.topics": False,
}
_NOT_OURS = frozenset({"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "_ASSIGNMENT_LOST", "_STATE"})
"""Answers to a commit by a member that Kafka has excluded, or during a rebalance."""
_SPECIAL = re.compile(r"[].^$*+?(){}|\\[]")
_ESCAPED = r"\\\g<0>"

_T = TypeVar("_T")
_log = logging.getLogger("outbox")


class KafkaSource:
    """Implements `outbox.ports.Source` on Kafka. A queue is a consumer group of that name.

    `url`, `topic` and `properties` are those of `KafkaTransport`. A `topic` that is a function gets the binding key of a
    consumer, and returns the name of a topic, or a regular expression that begins with `^`. Creates no topics: waits for those
    that do not exist.

    Raises `ConfigurationError` for a property that is unknown, invalid, or reserved because guarantees depend on it.
    """

    label = LABEL
    guarantees = GUARANTEES

    def __init__(self, url: str, *, topic: str | TopicOf | None = None, properties: Mapping[str, Any] | None = None) -> None:
        self._topic = checked_topic(kafka_topic(url) if topic is None else topic)
        self._properties = client_properties(
            url, properties, _PROPERTIES, _GUARANTEES, lambda found: Consumer({**found, "group.id": "outbox"}).close()
        )

    @asynccontextmanager
    async def read(self, subscription: Subscription) -> AsyncIterator["KafkaReader"]:
        """See `outbox.ports.Source.read`."""
        wanted = topics_of(subscription.binding_key, self._topic)
        reader = KafkaReader(
            {**self._properties, "group.id": subscription.queue}, wanted, subscription.binding_key, topic=self._topic
        )
        try:
            await reader.connect()
            yield reader
        finally:
            await reader.close()

    async def close(self) -> None:
        """See `outbox.ports.Source.close`. Nothing is shared by reads."""


class _Token(NamedTuple):
    topic: str
    partition: int
    offset: int
    assignment: int
    """The number of the assignment in which the partition was read: later ones begin with what is committed."""


@dataclass(slots=True)
class _Position:
    """How far an assigned partition was read, returned by `fetch`, acknowledged and committed: the offsets after that."""

    assignment: int
    read: int = 0
    returned: int = 0
    acknowledged: int = 0
    committed: int = 0

    @property
    def to_commit(self) -> int:
        """What may be committed. Records that do not match the binding key are passed with those before them."""
        return self.read if self.acknowledged == self.returned else self.acknowledged


class KafkaReader:
    """Implements `outbox.ports.Reader` with a consumer that is used in a thread of its own."""

    def __init__(self, properties: Mapping[str, Any], wanted: str, binding_key: str, *, topic: str | TopicOf) -> None:
        self._properties = properties
        self._wanted = wanted
        self._binding_key = binding_key
        self._topic = topic
        self._consumer: Consumer | None = None
        self._positions: dict[tuple[str, int], _Position] = {}
        self._assignments = 0
        self._ahead: deque[Received] = deque()
        self._troubles: deque[KafkaError] = deque(maxlen=8)
        self._missing: set[str] = set()
        self._paused = False
        self._is_stuck = False
        self._is_hanging = False
        self._away = False
        self._interrupted = False
        self._thread = _Thread(f"outbox kafka {properties['group.id']}", idle=self._keep_alive)

    async def connect(self) -> None:
        """Joins the group. Raises `BrokerUnavailableError` if the cluster does not answer."""
        await self._thread.call(self._connect)

    async def fetch(self, limit: int) -> Sequence[Received]:
        """See `outbox.ports.Reader.fetch`."""
        self._interrupted = False
        reading = self._thread.submit(lambda: self._read(limit))
        try:
            return await asyncio.wrap_future(reading)
        except asyncio.CancelledError:
            # What it finds is returned by the next call: offsets after it must not be committed without it.
            self._interrupted = True
            reading.add_done_callback(self._keep)
            raise

    async def acknowledge(self, received: Sequence[Received]) -> None:
        """See `outbox.ports.Reader.acknowledge`."""
        tokens = [each.token for each in received if isinstance(each.token, _Token)]
        try:
            await self._thread.call(lambda: self._acknowledge(tokens))
        except asyncio.CancelledError:
            self._is_hanging = True
            raise

    async def close(self) -> None:
        """Leaves the group. Waits for that for `CLOSE_TIMEOUT` at most, and if it is cancelled, not at all."""
        self._interrupted = True
        closing = self._thread.submit(self._close)
        self._thread.end()
        # If it has joined no group, there is none to leave. If a commit hangs, so would this.
        if self._consumer is not None and not self._is_hanging:
            await asyncio.wait([asyncio.wrap_future(closing)], timeout=CLOSE_TIMEOUT.total_seconds())

    # --- in the thread -------------------------------------------------------------------------------------------------

    def _connect(self) -> Consumer:
        if self._consumer is None:
            consumer = Consumer({**self._properties, "error_cb": self._record})
            try:
                self._require_answer(consumer, CONNECT_TIMEOUT.total_seconds())
                consumer.subscribe([self._wanted], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose)
            except BaseException:
                consumer.close()
                raise
            self._consumer = consumer
        return self._consumer

    def _require_answer(self, consumer: Consumer, within: float) -> None:
        try:
            consumer.list_topics(PROBE_TOPIC, timeout=within)
        except KafkaException as error:
            with suppress(Exception):
                consumer.poll(0)  # takes the reasons
            texts = [text_of(each) for each in self._troubles if each.name() != "_ALL_BROKERS_DOWN"]
            raise BrokerUnavailableError(f"Kafka does not answer: {texts[-1] if texts else text_of(error)}") from error
        self._away = False
        self._troubles.clear()

    def _read(self, limit: int) -> Sequence[Received]:
        consumer = self._connect()
        if self._away:
            self._require_answer(consumer, PATIENCE.total_seconds())
        if self._paused:
            consumer.resume(consumer.assignment())
            self._paused = False
        self._commit(consumer)  # what could not be committed before
        if self._is_stuck and not self._ahead:
            self._close()
            consumer = self._connect()
        if not self._ahead:
            until = monotonic() + PATIENCE.total_seconds()
            records: list[Any] = []
            while not records and not self._interrupted and monotonic() < until:
                first = consumer.poll(SLICE_SECONDS)
                # `consume` would wait for all of them.
                records = [] if first is None else [first, *consumer.consume(limit - 1, timeout=0)]
            self._sort(records)
            if not records and self._away:
                self._require_answer(consumer, PATIENCE.total_seconds())
            self._commit(consumer)  # of records that do not match
        return [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]

    def _sort(self, records: Sequence[Any]) -> None:
        """Puts the messages of records that match into `_ahead`. Raises `BrokerUnavailableError` if there are only errors."""
        failed: KafkaError | None = None
        for record in records:
            error = record.error()
            if error is not None:
                text = text_of(error)
                position = self._positions.get((record.topic(), record.partition()))
                # The client asks for the committed offset of a partition once, and without it never reads it.
                self._is_stuck |= record.offset() is None and position is not None and position.read == 0
                if error.name() not in NO_TOPIC | {"TOPIC_AUTHORIZATION_FAILED"}:
                    # One that was excluded joins the group again with the next call.
                    failed = failed if error.name() == "_MAX_POLL_EXCEEDED" else error
                elif text not in self._missing:
                    self._missing.add(text)
                    _log.warning("the queue %s waits for a topic: %s", self._properties["group.id"], text)
                continue
            topic, partition, offset = record.topic(), record.partition(), record.offset()
            position = self._positions.get((topic, partition))
            if position is None:
                continue  # revoked by one of the calls that returned these records
            if offset < position.read:
                # The log begins again: its topic was deleted and created, or it was truncated. What was read before is void.
                self._assignments += 1
                position = self._positions[topic, partition] = _Position(self._assignments)
            position.read = offset + 1
            message = message_of(record, self._topic)
            if topics.matches(self._binding_key, message.routing_key):
                position.returned = offset + 1
                self._ahead.append(Received(message, _Token(topic, partition, offset, position.assignment)))
        if failed is not None and not self._ahead:
            if failed.fatal():
                # A client with a fatal error stays broken. The next fetch makes another one.
                self._close()
            raise BrokerUnavailableError(f"Kafka refuses to be read: {text_of(failed)}")

    def _acknowledge(self, tokens: Sequence[_Token]) -> None:
        for token in tokens:
            position = self._positions.get((token.topic, token.partition))
            if position is not None and position.assignment == token.assignment:
                position.acknowledged = max(position.acknowledged, token.offset + 1)
        if self._consumer is not None:
            self._commit(self._consumer)

    def _commit(self, consumer: Consumer) -> None:
        """Commits what is acknowledged.

        What another member has by now, has to wait for a rebalance, or is of a topic that was deleted, is left as it is: only
        polling brings the rebalance that takes it away.
        """
        wanted = {key: position for key, position in self._positions.items() if position.to_commit > position.committed}
        if not wanted:
            return
        offsets = [TopicPartition(*key, position.to_commit) for key, position in wanted.items()]
        try:
            committed = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() in _NOT_OURS | NO_TOPIC:
                return
            raise BrokerUnavailableError(f"Kafka does not take offsets: {text_of(error)}") from error
        for each in committed or ():
            if each.error is None:
                wanted[each.topic, each.partition].committed = each.offset

    def _assign(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._assignments += 1
        for each in partitions:
            self._positions[each.topic, each.partition] = _Position(self._assignments)

    def _revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        # The last chance to commit what is stored: the next member begins with what is committed.
        with suppress(BrokerUnavailableError):
            self._commit(consumer)
        self._lose(consumer, partitions)

    def _lose(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        lost = {(each.topic, each.partition) for each in partitions}
        for key in lost:
            self._positions.pop(key, None)
        # The next member reads them again, from what is committed.
        self._ahead = deque(each for each in self._ahead if not isinstance(each.token, _Token) or each.token[:2] not in lost)

    def _record(self, error: KafkaError) -> None:
        self._troubles.append(error)
        self._away = self._away or error.name() == "_ALL_BROKERS_DOWN"

    def _keep_alive(self) -> None:
        if self._consumer is not None:
            with suppress(Exception):  # the next fetch reports it
                # The poll is for the group's protocol only. Without the pause it would fetch records, too.
                self._consumer.pause(self._consumer.assignment())
                self._paused = True
                record = self._consumer.poll(0)
                self._sort([] if record is None else [record])

    def _keep(self, reading: "Future[Sequence[Received]]") -> None:
        if not reading.cancelled() and reading.exception() is None:
            self._ahead.extendleft(reversed(reading.result()))

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._positions.clear()  # nothing more is committed
        if consumer is not None:
            with suppress(Exception):  # it is gone in any case
                # If an assignment still waits for its callback, closing may end the group first. The callback then waits for
                # an answer of the group forever, and holds the interpreter's lock: the process would stand still.
                consumer.unsubscribe()
                until = monotonic() + CLOSE_TIMEOUT.total_seconds() / 2
                while (consumer.poll(_CALLBACK_SECONDS) is not None or consumer.assignment()) and monotonic() < until:
                    pass
            with suppress(Exception):
                consumer.close()
        self._positions.clear()
        self._ahead.clear()
        self._is_stuck = False


class _Thread:
    """Runs calls one after another in a thread, and `idle` when there was none for `KEEP_ALIVE`."""

    def __init__(self, name: str, *, idle: Callable[[], None]) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._idle = idle
        # A daemon: one that hangs in a call of librdkafka must not keep the process alive.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, call: Callable[[], _T]) -> "Future[_T]":
        """Runs `call` after those that were submitted before."""
        future: Future[_T] = Future()
        self._calls.put((future, call))
        return future

    async def call(self, call: Callable[[], _T]) -> _T:
        """Runs `call`, and returns its result."""
        return await asyncio.wrap_future(self.submit(call))

    def end(self) -> None:
        """Ends the thread after the calls that were submitted before."""
        self._calls.put(None)

    def _run(self) -> None:
        while True:
            try:
                item = self._calls.get(timeout=KEEP_ALIVE.total_seconds())
            except Empty:
                self._idle()
                continue
            if item is None:
                return
            future, call = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except KafkaException as error:
                    future.set_exception(BrokerUnavailableError(f"Kafka cannot be read: {text_of(error)}"))
                except Exception as error:  # noqa: BLE001  raised where the result is awaited
                    future.set_exception(error)


def topics_of(binding_key: str, topic: str | TopicOf) -> str:
    """Returns the topic whose records may match `binding_key`, or a regular expression for several, which begins with `^`.

    Raises `ConfigurationError` if it can be neither.
    """
    if callable(topic):
        name = topic(binding_key)
    elif ROUTING_KEY_IN_TOPIC in topic and ("*" in binding_key or "#" in binding_key):
        before, *after = (_SPECIAL.sub(_ESCAPED, part) for part in topic.split(ROUTING_KEY_IN_TOPIC))
        return f"^{before}{pattern_of(binding_key)}{'.*'.join(after)}$"
    else:
        name = topic.replace(ROUTING_KEY_IN_TOPIC, binding_key)
    if not isinstance(name, str) or not (name.startswith("^") or TOPIC.fullmatch(name)):
        raise ConfigurationError(
            f"the binding key {binding_key!r} leads to {name!r:.300}, which is not the name of a topic: 1 to 249 letters, "
            "digits, dots, underscores and hyphens"
        )
    return name


def pattern_of(binding_key: str) -> str:
    """Returns the regular expression of a binding key in POSIX's syntax, as librdkafka compiles it."""
    words = binding_key.split(".")
    pattern = ""
    needs_dot = False
    for word in words:
        if word == "#":
            # Behind a word, it stands for words with a dot before each; at the beginning, with a dot after each.
            pattern += r"(\.[^.]*)*" if needs_dot else r"([^.]*\.)*"
            continue
        pattern += (r"\." if needs_dot else "") + ("[^.]*" if word == "*" else _SPECIAL.sub(_ESCAPED, word))
        needs_dot = True
    return pattern if needs_dot else ".*"


def message_of(record: Any, topic: str | TopicOf) -> Message:
    """Decodes a record of any producer. Never raises: what cannot be read is replaced by what the record has otherwise."""
    found: Any = ()
    with suppress(UnicodeDecodeError):  # the client decodes the names
        found = record.headers() or ()
    # As text, in base64 if they are none that PostgreSQL stores. Of several with one name, the last counts.
    headers: dict[str, Any] = {name: None if value is None else _text(value, otherwise=b64encode) for name, value in found}
    own = {name: headers.pop(name) for name in list(headers) if name.lower().startswith(RESERVED_PREFIX)}
    with suppress(MalformedMessageError):
        for name in decode_tracking_ids(own.get(JSON_HEADERS), source=JSON_HEADERS):
            with suppress(ValueError, TypeError, RecursionError, KeyError):
                headers[name] = json.loads(headers[name])
    kind, milliseconds = record.timestamp()
    sent = datetime.now(UTC)
    if kind != TIMESTAMP_NOT_AVAILABLE:
        with suppress(ValueError, OverflowError, OSError):
            sent = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    place = f"{LABEL}:{record.topic()}:{record.partition()}:{record.offset()}"
    arguments = decode_envelope(own, id_=place, routing_key=routing_key_of(record.topic(), topic), created_at=sent)
    key = record.key()
    arguments["ordering_key"] = None if key is None else _text(key, otherwise=hexlify)
    content_type = headers.pop(CONTENT_TYPE, None)  # of any type, if the record says that it is JSON
    return Message(
        body=record.value() or b"",
        content_type=None if content_type is None else str(content_type),
        headers=headers,
        **arguments,
    )


def _text(value: bytes | str, *, otherwise: Callable[[bytes], bytes]) -> str:
    raw = value.encode() if isinstance(value, str) else value
    with suppress(UnicodeDecodeError):
        if 0 not in raw:
            return raw.decode()
    return otherwise(raw).decode()
