"""Publishes batches on a pool of channels, and decides about batches that a lost connection cut off."""

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
"""How many batches are in flight at once; more wait for their turn."""

CONNECTION_FORCED = 320
"""The reply code of a broker that shuts down, and of an operator who closes a connection."""
NOT_FOUND = 404
ACCESS_REFUSED = 403
NO_CODE = 0

_OPENING = timedelta(seconds=5)
_PROBING = timedelta(seconds=10)
_ASKING = timedelta(seconds=2)
"""How much of a timeout, if so much of it is a quarter at most, is kept for asking whether the broker answers at all."""
_TOO_LARGE = re.compile(r"message size \d+ .*max size (\d+)")


class ForbiddenError(BrokerUnavailableError):
    """This user may not write to the exchange at all: no message is to blame."""


class Pipeline:
    """Sends batches through `link`, each on a channel of its own; `exchange_gone` is called when one is missing."""

    def __init__(self, link: Link, *, exchange_gone: Callable[[], None]) -> None:
        self._link = link
        self._exchange_gone = exchange_gone
        self._turns = asyncio.Semaphore(MOST_CHANNELS)
        self._idle: list[ConfirmChannel] = []
        self._largest_body: tuple[AbstractConnection, int] | None = None

    async def send(self, publications: Sequence[Publication], *, timeout: timedelta) -> list[SendResult]:
        """One result for each publication, within `timeout`; raises nothing for what a message or the broker did."""
        batch = Batch(publications)
        asking = min(_ASKING, timeout / 4)
        patience = timeout - asking
        answering = False
        try:
            async with asyncio.timeout(patience.total_seconds()), self._turns:
                await self._send_by_halves(batch, opening=min(_OPENING, patience / 2))
        except TimeoutError:
            failure = Failure("timeout", f"the broker confirmed nothing more within {patience.total_seconds():g} s")
            answering = await self._answers(asking)
        except BrokerUnavailableError as error:
            failure = Failure.of(error)
        else:
            failure = Failure("", "")
        batch.finish()
        missing = Unconfirmed(failure) if answering else NotSent(failure)
        unsent = NotSent(failure)
        return [
            result if result is not None else unsent if index in batch.unsent else missing
            for index, result in enumerate(batch.results)
        ]

    async def _answers(self, within: timedelta) -> bool:
        """Whether the broker answers, on a channel of the same connection, while it confirms nothing on another.

        It does not while it is frozen, and while an alarm keeps it from reading what publishers send.
        """
        connection = self._link.current
        if connection is None or is_blocked(connection):
            return False
        try:
            async with asyncio.timeout(within.total_seconds()):
                with translate_connection_errors():
                    self._idle.append(await ConfirmChannel.open(connection))
        except (TimeoutError, BrokerUnavailableError, AMQPChannelError):
            return False
        return True

    async def may_publish(self, exchange: str) -> bool:
        """Whether this user may write to `exchange`, found out with a message that no queue is bound for.

        Raises `BrokerUnavailableError` if the broker does not say now.
        """
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
        """Bytes that a content header may have on the present connection."""
        connection = self._link.current
        return largest_payload(0 if connection is None else connection.connection_tune.frame_max or 0)

    def close(self) -> None:
        """Gives back the channels that are not in use."""
        while self._idle:
            self._idle.pop().abandon()

    async def _send_by_halves(self, batch: Batch, *, opening: timedelta) -> None:
        """Sends everything; what is cut off again in halves, until the message that the broker cannot take stands alone.

        A message that was alone when the broker closed the channel is to blame. If the connection was just lost, it is to
        blame when that happens to it twice in a row.
        """
        pending: deque[Sequence[int]] = deque([range(len(batch.publications))])
        lost_alone: int | None = None
        while pending:
            indices = pending.popleft()
            cut = await self._attempt(batch, indices, opening)
            unanswered = [index for index in indices if batch.results[index] is None]
            if cut is None or not unanswered:
                continue
            if len(unanswered) > 1:
                middle = len(unanswered) // 2
                pending.extendleft((unanswered[middle:], unanswered[:middle]))
            elif cut.code == NO_CODE and lost_alone != unanswered[0]:
                lost_alone = unanswered[0]
                pending.appendleft(unanswered)
            else:
                batch.results[unanswered[0]] = Refused(Failure(f"amqp {cut.code}", cut.text))

    async def _attempt(self, batch: Batch, indices: Sequence[int], opening: timedelta) -> ChannelCutError | None:
        """Sends once; how it was cut off if a message may be to blame. Raises `BrokerUnavailableError` if none is."""
        async with self._channel(opening) as channel:
            try:
                await channel.publish(batch, self._small_enough(batch, indices, channel.connection))
            except ChannelCutError as cut:
                # An operator or a shutdown closed the connection: no message is to blame.
                if cut.code == CONNECTION_FORCED:
                    raise BrokerUnavailableError(f"the broker closed the connection: {cut.text}") from None
                # The exchange was deleted while we were connected; it is declared again before the next batch.
                if cut.code == NOT_FOUND:
                    self._exchange_gone()
                    raise BrokerUnavailableError(f"an exchange is missing: {cut.text}") from None
                if cut.code == ACCESS_REFUSED and ("to exchange" in cut.text or "internal exchange" in cut.text):
                    raise ForbiddenError(f"a permission is missing: {cut.text}") from None
                if (named := _TOO_LARGE.search(cut.text)) is not None:
                    self._largest_body = (channel.connection, int(named[1]))
                return cut
        return None

    @asynccontextmanager
    async def _channel(self, opening: timedelta) -> AsyncIterator[ConfirmChannel]:
        """A channel for one batch. Unless that ends well it is closed, so that late confirms fit nothing."""
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
                raise BrokerUnavailableError(f"the broker gives no channel: {error}") from None
        try:
            yield channel
        finally:
            if channel.usable:
                self._idle.append(channel)
            else:
                channel.abandon()

    def _small_enough(self, batch: Batch, indices: Sequence[int], connection: "AbstractConnection") -> Sequence[int]:
        """Refuses bodies over the limit that the broker has named before, which a client cannot ask for."""
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
