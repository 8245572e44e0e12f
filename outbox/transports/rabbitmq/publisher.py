"""Publishes batches on a pool of channels, and finds the message that makes the broker close one."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from aiormq.exceptions import AMQPChannelError
from pamqp.commands import Basic

from outbox.core.outcome import Failure
from outbox.errors import BrokerUnavailableError
from outbox.ports import NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.rabbitmq.amqp_encoding import Publication, encode_properties, largest_payload
from outbox.transports.rabbitmq.connection import Link, UnresponsiveError, is_blocked, translate_connection_errors
from outbox.transports.rabbitmq.publish_channel import Batch, ChannelCutError, ConfirmChannel

if TYPE_CHECKING:
    from aiormq.abc import AbstractConnection


MOST_CHANNELS = 16
"""Most batches in flight at once; further ones wait."""

CONNECTION_FORCED = 320
"""Reply code when the broker shuts down or an operator closes the connection."""
NOT_FOUND = 404
ACCESS_REFUSED = 403
NO_CODE = 0

_OPENING = timedelta(seconds=5)
_PROBING = timedelta(seconds=10)
_PROBE_RESERVE = timedelta(seconds=2)
"""Time reserved to find out whether the broker answers at all, up to a quarter of the timeout."""
_TOO_LARGE = re.compile(r"message size \d+ .*max size (\d+)")


class ForbiddenError(BrokerUnavailableError):
    """The user may not write to the exchange. No message is the cause."""


class Pipeline:
    """Sends batches through `link`, each on its own channel. Calls `on_exchange_missing` if an exchange is missing."""

    def __init__(self, link: Link, *, on_exchange_missing: Callable[[], None]) -> None:
        self._link = link
        self._on_exchange_missing = on_exchange_missing
        self._slots = asyncio.Semaphore(MOST_CHANNELS)
        self._idle: list[ConfirmChannel] = []
        self._largest_body: tuple[AbstractConnection, int] | None = None

    async def send(self, publications: Sequence[Publication], *, timeout: timedelta) -> list[SendResult]:
        """Returns one result per publication within `timeout`. Never raises for a message's or the broker's fault."""
        batch = Batch(publications)
        reserve = min(_PROBE_RESERVE, timeout / 4)
        patience = timeout - reserve
        responsive = False
        try:
            async with asyncio.timeout(patience.total_seconds()), self._slots:
                await self._send_by_halves(batch, opening=min(_OPENING, patience / 2))
        except TimeoutError:
            failure = Failure("timeout", f"the broker confirmed nothing more within {patience.total_seconds():g} s")
            responsive = await self._is_responsive(reserve)
        except BrokerUnavailableError as error:
            failure = Failure.of(error)
        else:
            failure = Failure("", "")
        batch.finish()
        missing = Unconfirmed(failure) if responsive else NotSent(failure)
        unsent = NotSent(failure)
        return [
            result if result is not None else unsent if index in batch.unsent else missing
            for index, result in enumerate(batch.results)
        ]

    async def _is_responsive(self, within: timedelta) -> bool:
        """Whether the broker still answers on the connection, though it confirmed nothing on one channel.

        False while it is frozen or blocks publishers because of an alarm.
        """
        connection = self._link.current
        if connection is None or is_blocked(connection):
            return False
        try:
            async with asyncio.timeout(within.total_seconds()):
                with translate_connection_errors():
                    # A new channel is a question that every broker answers, and the next batch can use it.
                    self._idle.append(await ConfirmChannel.open(connection))
        except (TimeoutError, BrokerUnavailableError, AMQPChannelError):
            return False
        return True

    async def can_publish(self, exchange: str) -> bool:
        """Whether the user may write to `exchange`. Raises `BrokerUnavailableError` if that cannot be found out now."""
        # AMQP has no way to ask. A message with a random routing key is tried; no queue is bound for it.
        probe = Publication(exchange, f"outbox.probe.{uuid4()}", "", encode_properties(Basic.Properties()), b"")
        try:
            async with asyncio.timeout(_PROBING.total_seconds()):
                await self._send_by_halves(Batch([probe]), opening=_OPENING)
        except ForbiddenError:
            return False
        except TimeoutError:
            raise BrokerUnavailableError("the broker does not answer") from None
        return True

    @property
    def largest_header(self) -> int:
        """Most bytes of a content header on the current connection."""
        connection = self._link.current
        return largest_payload(0 if connection is None else connection.connection_tune.frame_max or 0)

    def close(self) -> None:
        """Closes the idle channels."""
        while self._idle:
            self._idle.pop().abandon()

    async def _send_by_halves(self, batch: Batch, *, opening: timedelta) -> None:
        """Sends all messages. Sends interrupted ones again in halves, to find a message that the broker cannot take."""
        pending: deque[Sequence[int]] = deque([range(len(batch.publications))])
        lost_alone: int | None = None
        while pending:
            indices = pending.popleft()
            cut = await self._send_once(batch, indices, opening)
            unanswered = [index for index in indices if batch.results[index] is None]
            if cut is None or not unanswered:
                continue
            if len(unanswered) > 1:
                middle = len(unanswered) // 2
                pending.extendleft((unanswered[middle:], unanswered[:middle]))
            # The message was alone. If the broker gave a reason, the message is the cause. If the connection was just lost,
            # that may be chance: the message is the cause if it happens twice in a row.
            elif cut.code == NO_CODE and lost_alone != unanswered[0]:
                lost_alone = unanswered[0]
                pending.appendleft(unanswered)
            else:
                batch.results[unanswered[0]] = Refused(Failure(f"amqp {cut.code}", cut.text))

    async def _send_once(self, batch: Batch, indices: Sequence[int], opening: timedelta) -> ChannelCutError | None:
        """Sends once. Returns the interruption if a message may have caused it, and raises `BrokerUnavailableError` if not."""
        async with self._channel(opening) as channel:
            try:
                await channel.publish(batch, self._refuse_too_large(batch, indices, channel.connection))
            except ChannelCutError as cut:
                # A shutdown or an operator closed the connection: no message is the cause.
                if cut.code == CONNECTION_FORCED:
                    raise BrokerUnavailableError(f"the broker closed the connection: {cut.text}") from None
                # The exchange was deleted meanwhile. It is declared again before the next batch.
                if cut.code == NOT_FOUND:
                    self._on_exchange_missing()
                    raise BrokerUnavailableError(f"an exchange is missing: {cut.text}") from None
                if cut.code == ACCESS_REFUSED and ("to exchange" in cut.text or "internal exchange" in cut.text):
                    raise ForbiddenError(f"a permission is missing: {cut.text}") from None
                if (named := _TOO_LARGE.search(cut.text)) is not None:
                    self._largest_body = (channel.connection, int(named[1]))
                return cut
        return None

    @asynccontextmanager
    async def _channel(self, opening: timedelta) -> AsyncIterator[ConfirmChannel]:
        """Provides a channel for one batch. Reuses it only if the batch succeeded."""
        connection = await self._link.open()
        if is_blocked(connection):
            raise BrokerUnavailableError("the broker accepts no messages now: it is short of memory or disk space")
        channel = None
        while self._idle and channel is None:
            idle = self._idle.pop()
            if idle.usable and idle.connection is connection:
                channel = idle
        if channel is None:
            try:
                async with asyncio.timeout(opening.total_seconds()):
                    with translate_connection_errors():
                        channel = await ConfirmChannel.open(connection)
            except TimeoutError:
                self._link.discard(connection)
                raise UnresponsiveError("the broker does not answer") from None
            except AMQPChannelError as error:
                raise BrokerUnavailableError(f"the broker refused to open a channel: {error}") from None
        try:
            yield channel
        finally:
            if channel.usable:
                self._idle.append(channel)
            else:
                # Late confirms on it must not be taken for those of another batch.
                channel.abandon()

    def _refuse_too_large(self, batch: Batch, indices: Sequence[int], connection: "AbstractConnection") -> Sequence[int]:
        """Refuses bodies above the broker's limit, and returns the indices of the others."""
        # A client cannot ask for the limit. The broker names it in the error that closes the channel.
        if self._largest_body is None or self._largest_body[0] is not connection:
            return indices
        largest = self._largest_body[1]
        small = []
        for index in indices:
            size = len(batch.publications[index].body)
            if size <= largest:
                small.append(index)
            else:
                text = f"the body has {size} bytes, and the broker's max_message_size is {largest}"
                batch.results[index] = Refused(Failure("too large", text))
        return small
