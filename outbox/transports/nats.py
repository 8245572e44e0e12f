"""NATS JetStream as a Transport: publishes messages to streams, and waits until they are stored."""

import asyncio
import inspect
import json
import re
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from outbox.core.codec import AMQP
from outbox.core.envelope import CONTENT_TYPE, JSON_HEADERS, encode_envelope
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, nats_hosts, nats_subject, redacted, server_address
from outbox.errors import BrokerUnavailableError, ConfigurationError, MissingExtraError
from outbox.ports import CONFIRMED, UNROUTABLE, Guarantees, NotSent, Refused, SendResult, Unconfirmed

try:
    from nats.aio.client import Client
    from nats.aio.subscription import Subscription
    from nats.errors import Error as NatsError
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="NATS", extra="nats") from error

DEDUPLICATION_ID = "Nats-Msg-Id"
LABEL = "nats"
"""The exchange of messages that workers have stored."""
GUARANTEES = Guarantees(keeps_state=False)

CONNECT_TIMEOUT = timedelta(seconds=5)
CLOSE_TIMEOUT = timedelta(seconds=2)
RESERVE = timedelta(seconds=2)
"""Time reserved for finding out whether the server answers at all, and which streams exist: up to a quarter of the timeout."""

API_TIMEOUT = 5.0
"""Seconds to wait for an answer of JetStream's API."""

SubjectOf = Callable[[str], str]
"""Returns the subject for a routing key."""
Handler = Callable[[bytes, bytes, bytes, bytes | None], None]

# Wildcards, spaces and empty words are not allowed by NATS. $JS.API and the like are requests, and _INBOX is for answers.
_SUBJECT = re.compile(r"(?!\$|_INBOX\.)[^\s.*>\x00-\x1f\x7f]+(\.[^\s.*>\x00-\x1f\x7f]+)*")
_LONGEST_SUBJECT = 1_000
"""In bytes. A server closes the connection if the line with the subject and the inbox has more than 4,096."""
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
SERVERS_HEADERS = "nats-"
"""Headers with this prefix are instructions to the server, among them to delete what a stream has."""
_NO_RESPONDERS = b"NATS/1.0 503"
_DENIED = re.compile(r'permissions violation for publish to "([^"]*)"')

# Error codes of JetStream.
_STORE_FAILED = 10077
_FAULTS_OF_MESSAGES = frozenset({10054, 10097})
"""The message, or its headers, are larger than the stream allows."""
_NO_JETSTREAM = frozenset({10039, 10076})
_FULL = ("maximum messages", "maximum bytes")

_LOST = NotSent(Failure("connection", "the connection to NATS was lost"))

_GUARANTEES: Mapping[str, Any] = {
    # A client that reconnects by itself would send what was reported as not sent, behind later messages.
    "allow_reconnect": False,
    "max_reconnect_attempts": 1,
    "reconnect_time_wait": 0,
}
_NOT_OPTIONS = frozenset({*_GUARANTEES, "self", "servers", "error_cb", "skip_subject_validation", "verbose"})
_URL_OPTIONS = frozenset({"subject", "stream", "credentials", "tls_ca", "tls_cert", "tls_key"})


class NatsTransport:
    """Implements `outbox.ports.Transport` on JetStream, over one connection. All publishes of a batch are in flight at once.

    `url` is `nats://user:password@host:4222,host2:4222/?subject=…`, or `natss://…` with TLS. `subject` names the subject of a
    message: text, in which `{routing_key}` stands for the message's routing key, or a function from routing keys to subjects.
    Default: that of the URL, or else the routing key. `options` are options of `nats.connect`.

    Raises `ConfigurationError` for an option that is unknown, or reserved because guarantees depend on it.
    """

    label = LABEL
    guarantees = GUARANTEES

    def __init__(self, url: str, *, subject: str | SubjectOf | None = None, options: Mapping[str, Any] | None = None) -> None:
        self._subject = checked_subject(nats_subject(url) if subject is None else subject)
        self._link = NatsLink(url, options)
        self._address = server_address(url)

    @property
    def destination(self) -> str:
        """The servers and the subject, without secrets. Relays with the same text send to the same place."""
        subject = self._subject
        if callable(subject):
            subject = f"of {subject.__module__}.{getattr(subject, '__qualname__', type(subject).__qualname__)}"
        return f"{self._address}, subject {subject}"

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        await self._link.connection(CONNECT_TIMEOUT.total_seconds())

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`.

        What was not confirmed in time may be stored later. If it is sent again within the stream's duplicate window, the stream
        keeps it once.
        """
        end = asyncio.get_running_loop().time() + timeout.total_seconds()
        until = end - min(RESERVE, timeout / 4).total_seconds()
        batch = _Batch(messages, self._subject)
        if not batch.left:
            return batch.results()
        try:
            connection = await self._link.connection(until - asyncio.get_running_loop().time())
        except BrokerUnavailableError as error:
            return batch.results(NotSent(Failure("connection", str(error))))
        await connection.publish(batch, until)
        for subject, verdict in (await connection.examine(batch.unroutable(), end)).items():
            batch.overrule(subject, verdict)
        return batch.results(await connection.explain_silence(end)) if batch.left else batch.results()

    @property
    def only_subject(self) -> str | None:
        """The one subject of all messages; None if routing keys choose it."""
        return None if callable(self._subject) or ROUTING_KEY_IN_TOPIC in self._subject else self._subject

    async def has_stream(self, subject: str) -> bool:
        """Whether a stream stores `subject`. Raises `BrokerUnavailableError` while NATS or JetStream do not answer."""
        connection = await self._link.connection(CONNECT_TIMEOUT.total_seconds())
        return bool(await connection.streams_of(subject))

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._link.close()


class NatsLink:
    """A connection to the servers of `url`, which is opened again after it was lost, when it is needed.

    Raises `ConfigurationError`; see `NatsTransport`.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None) -> None:
        connect_options(url, options)  # raises its errors
        self._url = url
        self._options = options
        self._connection: NatsConnection | None = None
        self._connecting = asyncio.Lock()

    async def connection(self, within: float) -> "NatsConnection":
        """Returns the connection. Raises `BrokerUnavailableError` if there is none within so many seconds."""
        end = asyncio.get_running_loop().time() + max(within, 0)
        # One at a time, and the others take its result. If it fails, each tries in turn, in what is left of its own time.
        try:
            async with asyncio.timeout_at(end):
                await self._connecting.acquire()
        except TimeoutError:
            raise BrokerUnavailableError("NATS is not available: others have tried to connect for all of the time") from None
        try:
            if self._connection is None or self._connection.is_lost:
                left = end - asyncio.get_running_loop().time()
                self._connection = await NatsConnection.connected(self._current_options(), left)
            return self._connection
        finally:
            self._connecting.release()

    def _current_options(self) -> Mapping[str, Any]:
        # For each connection again: certificates are renewed while a relay runs.
        try:
            return connect_options(self._url, self._options)
        except ConfigurationError as error:
            raise BrokerUnavailableError(f"NATS is not available: {error}") from error

    async def close(self) -> None:
        """Closes the connection. Idempotent."""
        async with self._connecting:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.end()


def checked_subject(subject: str | SubjectOf) -> str | SubjectOf:
    """Returns `subject`, a template or a function. Raises `ConfigurationError` if no routing key makes a subject of it."""
    # What a routing key makes of it is checked when that is sent.
    is_legal = isinstance(subject, str) and _SUBJECT.fullmatch(subject.replace(ROUTING_KEY_IN_TOPIC, "x"))
    if not is_legal and not callable(subject):
        raise ConfigurationError(
            f"subject must be the name of a subject, not {subject!r:.300}: words without spaces, * and >, separated by dots. "
            f"In it {ROUTING_KEY_IN_TOPIC} stands for the routing key; or in Python a function from routing keys to subjects"
        )
    return subject


def encode(message: Message, subject: str | SubjectOf) -> tuple[str, bytes]:
    """Returns the subject of `message`, and its headers as NATS transmits them.

    Raises `ValueError` if its routing key makes no subject, or if the names of its headers are impossible in NATS.
    """
    key = message.routing_key
    name = subject(key) if callable(subject) else subject.replace(ROUTING_KEY_IN_TOPIC, key)
    if not isinstance(name, str) or not _SUBJECT.fullmatch(name) or len(name.encode()) > _LONGEST_SUBJECT:
        raise ValueError(
            f"{name!r:.300} is not the name of a subject: words without spaces, * and >, separated by dots, of at most "
            f"{_LONGEST_SUBJECT:,} bytes. Give the relay a subject that fits its routing keys"
        )
    requeue_count = message.requeue_count
    # A requeued message is a new one for the stream, whatever its duplicate window.
    headers: dict[str, Any] = {DEDUPLICATION_ID: f"{message.id}:{requeue_count}" if requeue_count else message.id}
    headers |= encode_envelope(message)
    if message.content_type is not None:
        headers[CONTENT_TYPE] = message.content_type
    for header, value in message.headers.items():
        if header == AMQP:  # types and properties that only AMQP has
            continue
        if not _HEADER_NAME.fullmatch(header) or header.lower().startswith(SERVERS_HEADERS):
            raise ValueError(f"NATS allows no header {header!r:.300} of an application: use ASCII letters, digits and hyphens")
        headers[header] = value
    lines, as_json = ["NATS/1.0\r\n"], []
    for header, value in headers.items():
        text = value
        # Text with line breaks would end the header, and spaces at its ends would be lost.
        if not isinstance(value, str) or not value.isprintable() or value != value.strip():
            text = json.dumps(value, ensure_ascii=not isinstance(value, dict | list))
            as_json.append(header)
        lines.append(f"{header}: {text}\r\n")
    if as_json:
        lines.append(f"{JSON_HEADERS}: {json.dumps(as_json)}\r\n")
    return name, "".join([*lines, "\r\n"]).encode()


class _Batch:
    """Messages to publish, and their results so far. `left` is the number of results that are still missing."""

    def __init__(self, messages: Sequence[Message], subject: str | SubjectOf) -> None:
        self._results: list[SendResult | None] = [None] * len(messages)
        self.subjects: dict[int, str] = {}
        self.parts: dict[int, tuple[bytes, bytes]] = {}
        self.done = asyncio.Event()
        for index, message in enumerate(messages):
            if message.target_queue is not None:
                self._results[index] = UNROUTABLE  # streams have no queues, and the subject would reach all consumers
                continue
            try:
                self.subjects[index], headers = encode(message, subject)
                self.parts[index] = (headers, message.body)
            except Exception as error:  # noqa: BLE001  a faulty function of the application must not stop other messages
                self._results[index] = Refused(Failure("unsendable", redacted(str(error))))
        self.left = len(self.subjects)

    def settle(self, index: int, result: SendResult) -> None:
        """Records the result of a message, unless it has one."""
        if self._results[index] is None:
            self._results[index] = result
            self.left -= 1
            if not self.left:
                self.done.set()

    def deny(self, subject: str, failure: Failure) -> None:
        """Records that the user may not publish to `subject`, in lower case."""
        for index, name in self.subjects.items():
            if name.lower() == subject:
                self.settle(index, Unconfirmed(failure))

    def unroutable(self) -> set[str]:
        """Returns the subjects that no stream answered for."""
        return {name for index, name in self.subjects.items() if self._results[index] is UNROUTABLE}

    def overrule(self, subject: str, result: SendResult) -> None:
        """Replaces the results of the messages of `subject`."""
        for index, name in self.subjects.items():
            if name == subject:
                self._results[index] = result

    def results(self, missing: SendResult = _LOST) -> Sequence[SendResult]:
        """Returns all results, `missing` where there is none."""
        return [missing if result is None else result for result in self._results]


class NoAnswerError(BrokerUnavailableError):
    """A request was not answered in time, although the connection seems to be alive."""


class NatsConnection(Client):
    """A connection of nats-py that is not restored. It also publishes batches, which nats-py could only do one by one.

    What happens once stays with nats-py: the handshake, TLS, logging in, pings, requests.
    """

    def __init__(self) -> None:
        super().__init__()
        self._batches: dict[bytes, _Batch] = {}
        self._asked: dict[bytes, asyncio.Future[tuple[bytes, bytes | None]]] = {}
        self._numbers = count()
        self._handlers: dict[int, Handler] = {}  # by the ids of subscriptions
        self._answer_prefix = b""
        self._needs_tls = False
        self._trouble: Exception | None = None

    @classmethod
    async def connected(cls, options: Mapping[str, Any], within: float) -> "NatsConnection":
        """Returns a connection. Raises `BrokerUnavailableError` if there is none within so many seconds."""
        connection = cls()
        try:
            async with asyncio.timeout(max(within, 0)):
                await connection._open(options)
        except (OSError, TimeoutError, NatsError) as error:
            connection.abort()
            raise BrokerUnavailableError(f"NATS is not available: {_text(connection._trouble or error)}") from error
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _open(self, options: Mapping[str, Any]) -> None:
        self._needs_tls = "tls" in options
        await self.connect(**options, **_GUARANTEES, error_cb=self._note)
        inbox = self.new_inbox()
        self._answer_prefix = f"{inbox}.".encode()
        # Publishes are written directly, and must not overtake the subscription to their answers.
        await self.take(f"{inbox}.*", self._take_answer)

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be sent or received any more."""
        return self.is_closed or self._reading_task is None or self._reading_task.done()

    @property
    def arriving(self) -> int:
        """How many bytes have arrived of a message that is not complete."""
        return len(self._ps.buf)

    async def publish(self, batch: _Batch, until: float) -> None:  # type: ignore[override]
        """Publishes a batch, and waits for its answers until then, a time of the event loop, or until the connection is lost.

        Refuses messages that are larger than the server allows. Later answers are ignored.
        """
        number = b"%d" % next(self._numbers)
        frames = []
        for index, (headers, body) in batch.parts.items():
            size = len(headers) + len(body)
            if size > self.max_payload:
                # The server would close the connection.
                text = f"it has {size:,} bytes with its headers, and the server takes {self.max_payload:,} (max_payload)"
                batch.settle(index, Refused(Failure("too large", text)))
                continue
            subject = batch.subjects[index].encode()
            answer = b"%b%b-%d" % (self._answer_prefix, number, index)
            frames.append(b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject, answer, len(headers), size, headers, body))
        transport = self._transport
        if batch.left and transport is not None and not self.is_lost:
            self._batches[number] = batch
            try:
                # Not `writelines`: in Python 3.12 and 3.13 it raises AttributeError if the connection was just lost.
                transport.write(b"".join(frames))
                async with asyncio.timeout_at(until):
                    await batch.done.wait()
            except TimeoutError:
                pass
            finally:
                del self._batches[number]

    async def examine(self, subjects: Iterable[str], end: float) -> Mapping[str, SendResult]:
        """Returns the results for subjects that no stream answered for, where they are not unroutable.

        A stream whose leader is being elected does not answer either.
        """

        async def verdict(subject: str) -> tuple[str, SendResult]:
            try:
                streams = await self.streams_of(subject, end - asyncio.get_running_loop().time())
            except NoAnswerError as error:
                return subject, Unconfirmed(Failure("jetstream", str(error)))
            except BrokerUnavailableError as error:
                return subject, NotSent(Failure("jetstream", str(error)))
            missing = Failure("no leader", f"the stream {', '.join(streams)} does not answer: it may have no leader")
            return subject, Unconfirmed(missing) if streams else UNROUTABLE

        return dict(await asyncio.gather(*map(verdict, subjects)))

    async def streams_of(self, subject: str, within: float = API_TIMEOUT) -> Sequence[str]:
        """Returns the names of the streams that store `subject`. Raises as `ask`."""
        return (await self.ask("STREAM.NAMES", {"subject": subject}, within)).get("streams") or ()

    async def ask(self, name: str, request: Mapping[str, Any], within: float = API_TIMEOUT) -> Mapping[str, Any]:
        """Returns what the API of JetStream answers, which may be an error of the request.

        Raises `BrokerUnavailableError` if the connection is lost or JetStream is not available, and its `NoAnswerError` if
        there is no answer within so many seconds.
        """
        data, headers = await self.request_raw(f"$JS.API.{name}".encode(), json.dumps(request).encode(), within)
        if headers and headers.startswith(_NO_RESPONDERS):
            raise BrokerUnavailableError("JetStream is not enabled on the server, or not for this user")
        answer: Mapping[str, Any] = json.loads(data)
        problem = answer.get("error", {})
        if problem.get("code") == 503 or problem.get("err_code") in _NO_JETSTREAM:
            raise BrokerUnavailableError(f"JetStream is not available: {problem.get('description')}")
        return answer

    async def request_raw(self, subject: bytes, body: bytes, within: float) -> tuple[bytes, bytes | None]:
        """Returns the first answer to a message, as its body and headers. Raises as `ask`."""
        number = b"%d" % next(self._numbers)
        self._asked[number] = answered = asyncio.get_running_loop().create_future()
        try:
            self.write([(subject, body)], answer=b"%b%b-0" % (self._answer_prefix, number))
            async with asyncio.timeout(max(within, 0)):
                answer: tuple[bytes, bytes | None] = await answered
                return answer
        except TimeoutError:
            raise NoAnswerError(f"NATS does not answer a request to {subject.decode()}") from None
        finally:
            del self._asked[number]

    def write(self, messages: Iterable[tuple[bytes, bytes]], *, answer: bytes = b"") -> None:
        """Sends subjects and bodies, soon. Raises `BrokerUnavailableError` if the connection is lost."""
        transport = self._transport
        if transport is None or self.is_lost:
            raise BrokerUnavailableError("the connection to NATS was lost")
        transport.write(b"".join(b"PUB %b %b %d\r\n%b\r\n" % (subject, answer, len(body), body) for subject, body in messages))

    async def take(self, inbox: str, handler: Handler) -> Subscription:
        """Subscribes to `inbox`. `handler` is called with the subject, reply subject, body and headers of each message."""
        subscription = await self.subscribe(inbox)
        self._handlers[self._sid] = handler
        await self.flush()
        return subscription

    async def leave(self, subscription: Subscription) -> None:
        """Ends a subscription of `take`."""
        self._handlers = {sid: each for sid, each in self._handlers.items() if self._subs.get(sid) is not subscription}
        await subscription.unsubscribe()

    async def acknowledge(self, replies: Sequence[bytes]) -> None:
        """Acknowledges messages of consumers, and waits until the server knows. Raises as `ask`."""
        self.write((reply, b"") for reply in replies[:-1])
        # Consumers take acknowledgements in their order, so the last answer is for all. Without the consumer there is none.
        await self.request_raw(replies[-1], b"", API_TIMEOUT)

    @property
    def server_version(self) -> tuple[int, ...]:
        """The version of the server, such as (2, 10)."""
        return tuple(int(number) for number in re.findall(r"\d+", str(self._server_info.get("version")))[:2])

    async def explain_silence(self, end: float) -> SendResult:
        """Returns the result of messages without an answer."""
        if await self.answers(end):
            return Unconfirmed(Failure("timeout", "no stream confirmed the message in time, but the server answers"))
        reason = "" if self._trouble is None else f": {_text(self._trouble)}"
        return NotSent(Failure("connection", f"NATS did not answer in time, or the connection was lost{reason}"))

    async def answers(self, end: float) -> bool:
        """Whether the server answers a ping until then, a time of the event loop. If not, the connection is aborted."""
        if not self.is_lost:
            try:
                async with asyncio.timeout_at(end):
                    # The limit is that of the block: nats-py's own, 10 s, would abort a connection that has more time.
                    await self.flush(timeout=3600)
            except (TimeoutError, NatsError, OSError):
                # What is buffered must not be sent later.
                self.abort()
        return not self.is_lost

    def abort(self) -> None:
        """Ends the connection at once, without sending what is buffered."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        self._status = Client.CLOSED
        self._release()
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()

    async def end(self) -> None:
        """Closes the connection, after it was sent what is buffered if that takes no longer than `CLOSE_TIMEOUT`."""
        try:
            with suppress(NatsError, OSError):
                async with asyncio.timeout(CLOSE_TIMEOUT.total_seconds()):
                    await self.close()
        finally:
            self.abort()

    async def _note(self, error: Exception) -> None:
        self._trouble = error
        if (denied := _DENIED.search(str(error))) is not None:
            for batch in self._batches.values():
                batch.deny(denied[1], Failure("permission", _text(error)))

    def _release(self) -> None:
        for batch in self._batches.values():
            batch.done.set()
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(BrokerUnavailableError("the connection to NATS was lost"))

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        # Before closing, which may fail: batches learn it at once.
        self._release()
        await super()._close(status, do_cbs)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if self._needs_tls and initial_connection and not info.get("tls_required"):
            # nats-py would go on without TLS, and send the password.
            if not info.get("tls_available"):
                raise NatsError("the server does not offer TLS")
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():  # its waiter was cancelled, for which nats-py would end its reading
            self._pongs.pop(0)
        else:
            await super()._process_pong()

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if (handler := self._handlers.get(sid)) is not None:
            handler(subject, reply, data, headers or None)

    def _take_answer(self, subject: bytes, _reply: bytes, data: bytes, headers: bytes | None) -> None:
        number, _, index = subject.removeprefix(self._answer_prefix).partition(b"-")
        if (answered := self._asked.get(number)) is not None and not answered.done():
            answered.set_result((data, headers))
        batch = self._batches.get(number)
        if batch is not None and (result := _result_of(data, headers)) is not None:
            batch.settle(int(index), result)


def _result_of(data: bytes, headers: bytes | None) -> SendResult | None:
    """Returns the result for an answer; None if it is not of a stream, but of another subscriber to the subject."""
    if headers and headers.startswith(_NO_RESPONDERS):
        return UNROUTABLE
    try:
        answer = json.loads(data)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    problem = answer.get("error")
    if problem is None:
        return CONFIRMED if "stream" in answer and "seq" in answer else None
    if not isinstance(problem, dict):
        return None
    code, text = problem.get("err_code"), str(problem.get("description"))
    failure = Failure(f"nats {code}", text)
    if code in _FAULTS_OF_MESSAGES:
        return Refused(failure)
    # A full stream may take smaller messages, or other subjects.
    return Refused(failure, by_queue=True) if code == _STORE_FAILED and text.startswith(_FULL) else Unconfirmed(failure)


def _text(error: Exception) -> str:
    return redacted(str(error) or type(error).__name__)


def connect_options(url: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the options of `nats.connect` for `url`. Raises `ConfigurationError`, which contains no secrets."""
    parts = urlsplit(url)
    hosts = nats_hosts(url).split(",")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in parameters.items():
        if name not in _URL_OPTIONS or not value:
            what = "NATS does not have" if value else "is empty"
            raise ConfigurationError(f"broker has a parameter that {what}: {name!r:.100}")
        if name.startswith("tls_") and parts.scheme.lower() != "natss":
            raise ConfigurationError(f"broker has the parameter {name!r}, which needs natss://")
    known = inspect.signature(Client.connect).parameters
    for name in more or {}:
        if name not in known or name in _NOT_OPTIONS:
            raise ConfigurationError(
                f"the option {name!r:.100} cannot be set: nats.connect or the relay's guarantees exclude it"
            )
    options: dict[str, Any] = {"servers": [f"nats://{host}" for host in hosts], "name": "outbox", "ping_interval": 20}
    user, separator, password = parts.netloc.rpartition("@")[0].partition(":")
    if separator:
        options |= {"user": unquote(user), "password": unquote(password)}
    elif user:
        options["token"] = unquote(user)
    if credentials := parameters.get("credentials"):
        options["user_credentials"] = credentials
    if parts.scheme.lower() == "natss":
        options["tls"] = _tls_context(parameters)
    return options | dict(more or {})


def _tls_context(parameters: Mapping[str, str]) -> ssl.SSLContext:
    if "tls_key" in parameters and "tls_cert" not in parameters:
        raise ConfigurationError("broker has the parameter tls_key without tls_cert")
    try:
        context = ssl.create_default_context(cafile=parameters.get("tls_ca"))
        if (certificate := parameters.get("tls_cert")) is not None:
            context.load_cert_chain(certificate, parameters.get("tls_key"))
    except OSError as error:
        raise ConfigurationError(f"broker names files for TLS that cannot be read: {error}") from None
    return context
