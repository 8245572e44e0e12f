"""Kafka as a Transport: sends messages as records through idempotent producers. `kafka_source` reads them."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from outbox.core.codec import AMQP, ORDERING_KEY
from outbox.core.envelope import CONTENT_TYPE, JSON_HEADERS, encode_envelope
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, kafka_hosts, kafka_topic, redacted, server_address
from outbox.errors import BrokerUnavailableError, ConfigurationError, MissingExtraError
from outbox.ports import CONFIRMED, UNROUTABLE, Guarantees, NotSent, Refused, SendResult, Unconfirmed

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="Kafka", extra="kafka") from error

LABEL = "kafka"
"""The exchange of messages that workers have stored."""
GUARANTEES = Guarantees(keeps_state=False)

MOST_BATCHES = 16
"""Most batches in flight at once; further ones wait."""
CONNECT_TIMEOUT = timedelta(seconds=5)
PROBE_TOPIC = "outbox.probe"
"""A topic that need not exist. Asking for it shows whether the cluster answers, in few bytes."""
RESERVE = timedelta(seconds=2)
"""Time reserved for purging, and for finding out whether the cluster answers at all: up to a quarter of the timeout."""

TopicOf = Callable[[str], str]
"""Returns the topic for a routing key."""

_PROPERTIES: Mapping[str, Any] = {
    "client.id": "outbox-relay",
    # Java's default, so that producers in both languages send a key to the same partition.
    "partitioner": "murmur2_random",
    # A missing topic is an answer at once: its messages are held, and probe it again.
    "topic.metadata.propagation.max.ms": 0,
    # How soon a producer sees that a topic exists by now, or may be written to.
    "topic.metadata.refresh.interval.ms": 5_000,
    # Records gather until `flush`, which ends the lingering at once. With less, the first ones would leave one by one.
    "linger.ms": 50,
    # Failures are in the results. At its usual level, librdkafka prints a line for each failed attempt to connect.
    "log_level": 2,
}
"""Properties of librdkafka that a URL or an argument may replace."""
# Idempotence keeps the order of a partition when the client retries. With `all`, a confirmed record survives the loss of a
# broker. A topic that is created by mistake would take messages that no consumer reads.
_GUARANTEES: Mapping[str, Any] = {"enable.idempotence": True, "acks": "all", "allow.auto.create.topics": False}
_NOT_OPTIONS = frozenset(
    {
        *_GUARANTEES,
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "enable.auto.offset.store",
        "group.id",
        "bootstrap.servers",
        "metadata.broker.list",
        "request.required.acks",
        "transactional.id",
        "delivery.report.only.error",
        "error_cb",
    }
)
TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")

# Errors by their names in Kafka's protocol; librdkafka's own begin with an underscore.
NO_TOPIC = frozenset({"_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART"})
_FAULTS_OF_RECORDS = frozenset(
    {
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "_INVALID_DIFFERENT_RECORD",
        "INVALID_TIMESTAMP",
        "POLICY_VIOLATION",
    }
)
"""Kafka answers with them for all records that left in one request, although one may be the cause."""
_FAULTS_OF_THE_USER = frozenset({"CLUSTER_AUTHORIZATION_FAILED", "SASL_AUTHENTICATION_FAILED"})
_LOOK_FOR_ROOM = 0.05
"""Seconds between looks for room in the queue of a producer."""
_T = TypeVar("_T")


class KafkaTransport:
    """Implements `outbox.ports.Transport` on Kafka. Each batch has a producer of its own, and runs in a thread.

    `url` is `kafka://user:password@host:9092,host2:9092/?topic=…`, or `kafkas://…` with TLS. Its other parameters and
    `properties` are properties of librdkafka. `topic` names the topic of a message: text, in which `{routing_key}` stands for
    the message's routing key, or a function from routing keys to topics. Default: that of the URL, or else the routing key.

    Raises `ConfigurationError` for a property that is unknown, invalid, or reserved because guarantees depend on it.
    """

    label = LABEL
    guarantees = GUARANTEES

    def __init__(self, url: str, *, topic: str | TopicOf | None = None, properties: Mapping[str, Any] | None = None) -> None:
        self._topic = topic = checked_topic(kafka_topic(url) if topic is None else topic)
        self._properties = producer_properties(url, properties)
        self._idle: list[_Session] = []
        self._threads: ThreadPoolExecutor | None = None
        self._address = server_address(url)

    @property
    def destination(self) -> str:
        """The cluster and the topic, without secrets. Relays with the same text send to the same place."""
        topic = self._topic
        if callable(topic):
            topic = f"of {topic.__module__}.{getattr(topic, '__qualname__', type(topic).__qualname__)}"
        return f"{self._address}, topic {topic}"

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        session = self._pop_idle()
        if session is not None and not session.has_trouble():
            self._idle.append(session)
        else:
            await self._in_thread(partial(self._connect, session, PROBE_TOPIC))

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`.

        After a timeout or a cancellation, what was not confirmed is purged, so that it cannot arrive after what is sent next.
        """
        batch = _Batch(messages, self._topic, timeout)
        try:
            return await self._in_thread(partial(self._send, batch))
        except asyncio.CancelledError:
            batch.cancel()
            raise

    @property
    def only_topic(self) -> str | None:
        """The topic of all messages; None if routing keys choose it."""
        return None if callable(self._topic) or ROUTING_KEY_IN_TOPIC in self._topic else self._topic

    async def has_topic(self, topic: str) -> bool:
        """Whether a topic exists. Raises `BrokerUnavailableError` while the cluster does not answer."""
        return await self._in_thread(partial(self._connect, self._pop_idle(), topic))

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        threads, self._threads = self._threads, None
        if threads is not None:
            # In a thread, because destroying a producer waits for its own threads.
            await asyncio.get_running_loop().run_in_executor(threads, self._idle.clear)
            threads.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Not in the threads of the loop: a batch may take as long as its timeout, and others resolve addresses there.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_BATCHES, thread_name_prefix="outbox kafka")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _connect(self, session: "_Session | None", topic: str) -> bool:
        """Makes `session`, or a new one, available if the cluster answers. Returns whether the topic exists."""
        if session is None or not session.usable:
            session = _Session(self._properties)
        exists = session.has_topic(topic, CONNECT_TIMEOUT.total_seconds())
        if exists is None:
            raise BrokerUnavailableError(f"Kafka does not answer{session.reason}")
        self._give_back(session)
        return exists

    def _send(self, batch: "_Batch") -> Sequence[SendResult]:
        session = self._pop_idle()
        if session is None:
            session = _Session(self._properties)
            # A producer that knows a broker begins at once. Otherwise its first request waits for a timer of its own.
            session.has_topic(PROBE_TOPIC, min(batch.patience, CONNECT_TIMEOUT).total_seconds())
        results = batch.send(session)
        # Otherwise the producer ends here: a late answer has nowhere to go.
        if session.usable:
            self._give_back(session)
        return results

    def _pop_idle(self) -> "_Session | None":
        try:
            return self._idle.pop()
        except IndexError:  # a thread may have taken the last one since a look at the length
            return None

    def _give_back(self, session: "_Session") -> None:
        if self._threads is not None:  # None: closed meanwhile
            self._idle.append(session)


class Record(NamedTuple):
    """A message in the form of Kafka."""

    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, str | bytes | None]]


def record_of(message: Message, topic: str | TopicOf) -> Record:
    """Encodes `message` for the topic of its routing key. Raises `ValueError` if that is not the name of a topic.

    The record's key is the ordering key, so messages of one key share a partition. Its timestamp is the time of sending: Kafka
    deletes by it, and a message may have waited in the outbox for longer than the topic keeps records.
    """
    key = message.routing_key
    name = topic(key) if callable(topic) else topic.replace(ROUTING_KEY_IN_TOPIC, key)
    if not isinstance(name, str) or not TOPIC.fullmatch(name):
        raise ValueError(
            f"{name!r:.300} is not the name of a topic: 1 to 249 letters, digits, dots, underscores and hyphens. Give the "
            "relay a topic that fits its routing keys"
        )
    fields = encode_envelope(message)
    ordering_key = fields.pop(ORDERING_KEY, None)
    headers: list[tuple[str, str | bytes | None]] = [*fields.items()]
    # A header of the application says more than our guess.
    if message.content_type is not None and CONTENT_TYPE not in message.headers:
        headers.append((CONTENT_TYPE, message.content_type))
    not_text = []
    for header, value in message.headers.items():
        if header != AMQP:  # types and properties that only AMQP has
            is_plain = isinstance(value, str) or value is None
            headers.append((header, value if is_plain else json.dumps(value, ensure_ascii=False)))
            if not is_plain:
                not_text.append(header)
    if not_text:
        headers.append((JSON_HEADERS, json.dumps(not_text)))
    return Record(name, None if ordering_key is None else ordering_key.encode(), message.body, headers)


class _Batch:
    """Messages to send, and their results so far. Everything but `cancel` runs in one thread."""

    def __init__(self, messages: Sequence[Message], topic: str | TopicOf, timeout: timedelta) -> None:
        self._messages = messages
        self._topic = topic
        self.patience = timeout - min(RESERVE, timeout / 4)
        self._end = monotonic() + timeout.total_seconds()
        self._until = monotonic() + self.patience.total_seconds()
        self._session: _Session | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Ends `send` early, from another thread."""
        # In this order: what is queued after the purge is seen by the check that follows the queueing.
        self._cancelled = True
        if (session := self._session) is not None:
            session.purge()

    def send(self, session: "_Session") -> Sequence[SendResult]:
        """Sends the messages through `session`, and returns one result for each."""
        self._session = session
        results, records = self._encode()
        pending = deque([list(records)] if records else [])
        while pending:
            indices = pending.popleft()
            answers = session.send([records[index] for index in indices], self._until, self._end, lambda: self._cancelled)
            refused = []
            for index, answer in zip(indices, answers, strict=True):
                results[index] = answer
                if isinstance(answer, Refused):
                    refused.append(index)
            if len(refused) > 1:
                # One of them may have been refused because of another one: send them again in halves, down to single ones.
                for index in refused:
                    results[index] = None
                middle = len(refused) // 2
                pending.extendleft((refused[middle:], refused[:middle]))
            if None in answers:
                break
        missing: SendResult = NotSent(session.fatal or Failure("", ""))
        if None in results and session.fatal is None:
            text = f"Kafka confirmed nothing more within {self.patience.total_seconds():g} s{session.reason}"
            missing = NotSent(Failure("timeout", text))
            # A cluster that answers but does not store has a partition without a leader, or without enough replicas.
            if not self._cancelled and session.has_topic(PROBE_TOPIC, self._end - monotonic()) is not None:
                missing = Unconfirmed(missing.failure)
        self._session = None
        return [missing if result is None else result for result in results]

    def _encode(self) -> tuple[list[SendResult | None], dict[int, Record]]:
        """Returns the results of the messages that cannot be sent, and the records of the others by index."""
        results: list[SendResult | None] = [None] * len(self._messages)
        records: dict[int, Record] = {}
        for index, message in enumerate(self._messages):
            if message.target_queue is not None:
                results[index] = UNROUTABLE  # Kafka has no queues, and the topic would reach all of its consumers
                continue
            try:
                records[index] = record_of(message, self._topic)
            except Exception as error:  # noqa: BLE001  a faulty function of the application must not stop other messages
                results[index] = Refused(Failure("unsendable", text_of(error)))
        return results, records


class _Session:
    """A producer, used by one thread at a time. `usable`: nothing of earlier batches can disturb the next one."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.usable = True
        self.fatal: Failure | None = None
        self._troubles: deque[KafkaError] = deque(maxlen=8)
        self._producer = Producer({**properties, "error_cb": self._troubles.append})

    @property
    def reason(self) -> str:
        """The latest trouble with the cluster, as the end of a sentence; empty if there was none."""
        texts = [text_of(trouble) for trouble in self._troubles if trouble.name() != "_ALL_BROKERS_DOWN"]
        return f": {texts[-1]}" if texts else ""

    def has_trouble(self) -> bool:
        """Whether a connection failed since the last look. Does not wait."""
        self._troubles.clear()
        try:
            self._producer.poll(0)
        except Exception as error:  # noqa: BLE001  raised for a fatal error, in several kinds
            self._record_fatal(error)
        return bool(self._troubles) or not self.usable

    def has_topic(self, topic: str, within: float) -> bool | None:
        """Whether the topic exists. None: the cluster did not answer within so many seconds, and `reason` may say why."""
        try:
            found = self._producer.list_topics(topic, timeout=max(within, 0)).topics[topic]
        except Exception:  # noqa: BLE001  no answer, whatever the reason
            with suppress(Exception):
                self._producer.poll(0)  # takes the reasons
            return None
        return found.error is None or found.error.name() not in NO_TOPIC

    def send(
        self, records: Sequence[Record], until: float, end: float, is_cancelled: Callable[[], bool]
    ) -> Sequence[SendResult | None]:
        """Sends records, and returns what Kafka answers until then, a time of `monotonic`; None: nothing.

        If an answer is missing, purges the producer, until `end` at most: it sends nothing of these records any more.
        """
        queued = 0
        reports: dict[int, KafkaError | None] = {}

        def note(index: int, error: KafkaError | None, _record: object) -> None:
            reports[index] = error

        def results() -> list[SendResult | None]:
            return [_result_of(reports[index]) if index in reports else None for index in range(len(records))]

        try:
            for index, record in enumerate(records):
                if is_cancelled() or not self._queue(record, partial(note, index), until):
                    break
                queued += 1
            if not is_cancelled():
                self._producer.flush(max(until - monotonic(), 0))
        except Exception as error:  # noqa: BLE001  raised for a fatal error, in several kinds
            self._record_fatal(error)
        if None in (answers := results()) or not self.usable:
            self.purge()
            # Reports what was purged, and what was stored just before.
            with suppress(Exception):
                self._producer.flush(max(end - monotonic(), 0) / 2)
            answers = results()
            # A request without an answer may be on a dead connection, on which the next one would wait, too.
            names = {error.name() for error in reports.values() if error is not None}
            self.usable = self.usable and len(reports) == queued and "_PURGE_INFLIGHT" not in names
        if self.fatal is not None:
            # What the error was called for a single record says nothing about its topic.
            answers = [None if isinstance(answer, Unconfirmed) else answer for answer in answers]
        return answers

    def purge(self) -> None:
        """Drops what is not answered: it is not sent, or not sent again. May be called from any thread."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)

    def _queue(self, record: Record, note: Callable[[Any, Any], None], until: float) -> bool:
        """Queues a record for sending. Returns False if there was no room for it until then."""
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, headers=record.headers, on_delivery=note)
                return True
            except BufferError:
                if monotonic() >= until:
                    return False
                self._producer.poll(_LOOK_FOR_ROOM)
            except KafkaException as error:
                if error.args[0].fatal():
                    raise
                note(error.args[0], None)
                return True

    def _record_fatal(self, error: Exception) -> None:
        self.usable = False
        # The client calls `error_cb` while its exception is already set, which Python wraps into another one.
        self.fatal = Failure("kafka", text_of(error.__cause__ or error))


def _result_of(error: KafkaError | None) -> SendResult | None:
    """Returns the result for a record's report; None if Kafka did not answer."""
    if error is None:
        return CONFIRMED
    name = error.name()
    failure = Failure(f"kafka {name}", text_of(error))
    if name in NO_TOPIC:
        return UNROUTABLE
    if name in _FAULTS_OF_RECORDS:
        return Refused(failure)
    if error.fatal() or name.startswith("_"):
        return None
    # An answer about the topic, such as missing permissions: others may be fine.
    return NotSent(failure) if name in _FAULTS_OF_THE_USER else Unconfirmed(failure)


def text_of(error: object) -> str:
    """Returns what librdkafka says about an error, without secrets."""
    if isinstance(error, KafkaException):
        error = error.args[0]
    return redacted(error.str() if isinstance(error, KafkaError) else str(error))


def checked_topic(topic: object) -> str | TopicOf:
    """Returns a topic as an argument or a URL gives it. Raises `ConfigurationError` if it cannot be one.

    What a routing key makes of it is checked when that is sent.
    """
    if callable(topic):
        return topic
    if isinstance(topic, str) and TOPIC.fullmatch(topic.replace(ROUTING_KEY_IN_TOPIC, "x")):
        return topic
    raise ConfigurationError(
        f"topic must be the name of a topic, not {topic!r:.300}: letters, digits, dots, underscores, hyphens, in which "
        f"{ROUTING_KEY_IN_TOPIC} stands for the routing key; or in Python a function from routing keys to topics"
    )


def producer_properties(url: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns librdkafka's properties of a producer for `url`. Raises `ConfigurationError`, which contains no secrets."""
    return client_properties(url, more, _PROPERTIES, _GUARANTEES, Producer)


def client_properties(
    url: str,
    more: Mapping[str, Any] | None,
    defaults: Mapping[str, Any],
    guarantees: Mapping[str, Any],
    create: Callable[[dict[str, Any]], object],
) -> dict[str, Any]:
    """Returns the properties of a client that `create` makes: `defaults`, those of `url` and `more`, then `guarantees`.

    Properties of producers and consumers may both be in a URL; a client ignores those of the other kind. Raises
    `ConfigurationError`, which contains no secrets.
    """
    parts = urlsplit(url)
    options = {name: value for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "topic"} | dict(
        more or {}
    )
    for name in options:
        if name in _NOT_OPTIONS:
            raise ConfigurationError(
                f"the property {name} cannot be set: Outbox's guarantees depend on it. Kafka's servers are those of the URL"
            )
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    has_sasl = bool(user) or not {"sasl.mechanism", "sasl.mechanisms"}.isdisjoint(options)
    properties: dict[str, Any] = {
        **defaults,
        "security.protocol": ("SASL_" if has_sasl else "") + ("SSL" if parts.scheme.lower() == "kafkas" else "PLAINTEXT"),
    }
    if user:
        properties |= {"sasl.username": unquote(user), "sasl.password": unquote(password)}
        if "sasl.mechanism" not in options:
            properties["sasl.mechanisms"] = "PLAIN"
    properties |= {**options, **guarantees}
    try:
        create(properties)  # checks everything and connects to nothing, without servers
    except (KafkaException, TypeError, ValueError) as error:
        raise ConfigurationError(f"broker has properties that librdkafka does not accept: {text_of(error)}") from None
    return {**properties, "bootstrap.servers": kafka_hosts(url)}
