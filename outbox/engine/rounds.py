"""Sending rounds: claims rows, sends their messages through a Transport, and settles each with its outcome."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, assert_never

from outbox.core.codec import TRACEPARENT
from outbox.core.events import RouteStalled, SendFailed, SendFailureType, SentMessage
from outbox.core.message import Message, PendingMessage, Way
from outbox.core.outcome import DONE, DROPPED, RETURNED, STALLED, Cause, Dead, Failure, RelayOutcome
from outbox.engine.ordering import Waves
from outbox.engine.routes import FIRST_PAUSE, LONGEST_HELD_KEY, Holds, Stalls, can_stall
from outbox.ports import Claim, Confirmed, NotSent, Refused, SendResult, Store, Transport, Unconfirmed, Unroutable
from outbox.retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """The committed results of a round.

    `released`: routes whose held messages are to be made due. `ordered`: it had messages with ordering keys, so later messages
    of these keys may be due now. `stalled`: routes that were found to accept no messages. `resumed`: stalled routes that accept
    messages again, and whose waiting messages are to be made due.
    """

    taken: int
    sent: Sequence[SentMessage] = ()
    failed: Sequence[SendFailed] = ()
    released: Sequence[Way] = ()
    stalled: Sequence[RouteStalled] = ()
    resumed: Sequence[Way] = ()
    ordered: bool = False
    unavailable: Failure | None = None


@dataclass(frozen=True, slots=True)
class StalledRoutes:
    """Stalled routes that were not known (`found`), and those that no message waits for any more (`gone`)."""

    found: Sequence[RouteStalled] = ()
    gone: Sequence[Way] = ()


class Round(Protocol):
    """Claimed messages that are being sent."""

    async def finish(self) -> RoundReport:
        """Sends and settles them. Raises `DatabaseUnavailableError` if the commit failed; the messages are sent again then."""
        ...

    async def abandon(self) -> None:
        """Releases the messages unsent, instead of `finish`."""
        ...


class Rounds(Protocol):
    """Starts rounds, which send through a Transport or within the database."""

    async def connect(self) -> None:
        """Connects to the broker, if there is one. Raises `BrokerUnavailableError`."""
        ...

    async def start(self, limit: int) -> Round | None:
        """Claims up to `limit` due messages. Returns None if there are none.

        Raises `BrokerUnavailableError` or `DatabaseUnavailableError`; then nothing was claimed.
        """
        ...

    async def start_probe(self) -> Round | None:
        """Waits until a stalled route is due for a probe, and claims the messages to send. Returns None if there are none.

        Raises as `start` does.
        """
        ...

    async def find_stalled(self) -> StalledRoutes:
        """Reads from the table which routes are stalled. Raises `DatabaseUnavailableError`."""
        ...


NO_QUEUE = Failure("unroutable", "no queue is bound for the routing key")
UNHOLDABLE = Failure("unroutable", f"the routing key is longer than the {LONGEST_HELD_KEY} bytes that can be held")

_MESSAGES_WAIT = Failure("stalled", "messages in the table are waiting for this route")
STALLED_SINCE = timedelta(seconds=15)
"""Age of a stalled route after which its waiting messages are in the table, if there are any."""
MOST_WAITING = 1_000
"""Most stalled routes read from the table at once."""
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class _Behind:
    """Not sent, because its route is known to be stalled and is probed with other messages."""


_BEHIND = _Behind()
_Result = SendResult | _Behind | None
"""None: not sent, or too late to show anything about its route. It is released as if it had not been claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPolicy:
    """How a relay sends. `expiration` is for rows without one; `drop_unroutable` drops messages that no queue is bound for."""

    exchange_name: str
    retry: RetryPolicy
    publish_timeout: timedelta
    expiration: timedelta | None
    drop_unroutable: bool
    now: Callable[[], datetime]


class SendingRounds:
    """Implements Rounds with a Store and a Transport."""

    def __init__(self, store: Store, transport: Transport, policy: SendingPolicy) -> None:
        self._store = store
        self._transport = transport
        self._policy = policy
        self._holds = Holds()
        self._stalls = Stalls()

    async def connect(self) -> None:
        """See `outbox.engine.rounds.Rounds.connect`."""
        await self._transport.open()

    async def start(self, limit: int) -> "SendingRound | None":
        """See `outbox.engine.rounds.Rounds.start`."""
        claim = await self._store.claim(limit)
        return None if claim is None else SendingRound(claim, self._transport, self._policy, self._holds, self._stalls)

    async def start_probe(self) -> "SendingRound | None":
        """See `outbox.engine.rounds.Rounds.start_probe`."""
        windows = dict(await self._stalls.until_due())
        try:
            await self._transport.open()
            claim = await self._store.claim_stalled(list(windows.items()))
        except BaseException:
            self._stalls.postpone(windows)
            raise
        found = () if claim is None else {_way(pending.message) for pending in claim.messages}
        self._stalls.postpone(windows.keys() - found)
        if claim is None:
            return None
        return SendingRound(claim, self._transport, self._policy, self._holds, self._stalls, probing=True)

    async def find_stalled(self) -> StalledRoutes:
        """See `outbox.engine.rounds.Rounds.find_stalled`."""
        waiting = await self._store.stalled_ways(MOST_WAITING)
        found = [way for way in waiting if self._stalls.stall(way, silent=True, pause=_ZERO)]
        # A list that was cut at the limit does not show which routes no message waits for.
        complete = len(waiting) < MOST_WAITING
        return StalledRoutes(
            found=[_stalled(self._policy.exchange_name, way, _MESSAGES_WAIT) for way in found],
            gone=self._stalls.forget_all_but(set(waiting), older_than=STALLED_SINCE) if complete else (),
        )


class SendingRound:
    """Claim → send → settle, in the claim's transaction. `probing`: the claimed messages probe stalled routes."""

    def __init__(
        self,
        claim: Claim,
        transport: Transport,
        policy: SendingPolicy,
        holds: Holds,
        stalls: Stalls,
        *,
        probing: bool = False,
    ) -> None:
        self._claim = claim
        self._transport = transport
        self._policy = policy
        self._holds = holds
        self._stalls = stalls
        self._probing = probing

    async def finish(self) -> RoundReport:
        """See `outbox.engine.rounds.Round.finish`."""
        async with self._claim as claim:
            results = await self._send(claim.messages)
            outcomes = [self._outcome(*sent) for sent in zip(claim.messages, results, strict=True)]
            # Before the commit: what the broker answered holds even if that fails, and other lanes avoid these routes at once.
            stalled, resumed = self._update_stalls(claim.messages, results)
            await claim.settle(outcomes)
        return replace(self._report(claim.messages, results, outcomes), stalled=stalled, resumed=resumed)

    async def abandon(self) -> None:
        """See `outbox.engine.rounds.Round.abandon`."""
        async with self._claim:
            pass  # unsettled messages are unchanged

    async def _send(self, claimed: Sequence[PendingMessage]) -> Sequence[_Result]:
        """Returns one result for each message within `publish_timeout`; see `_Result`."""
        results: list[_Result] = [None] * len(claimed)
        now = asyncio.get_running_loop().time
        # One deadline for all waves: it limits how long the claim's transaction stays open, however many messages a key has.
        deadline = now() + self._policy.publish_timeout.total_seconds()
        waves = Waves(claimed)
        while (wave := waves.next()) and (left := deadline - now()) > 0:
            # Messages on a stalled route would only hold up the rest of the batch, until the timeout.
            if self._stalls and not self._probing:
                for index in wave:
                    if _way(claimed[index].message) in self._stalls:
                        results[index] = _BEHIND
                wave = [index for index in wave if results[index] is None]
            answers = await self._send_wave([claimed[index] for index in wave], timedelta(seconds=left))
            for index, answer in zip(wave, answers, strict=True):
                results[index] = answer
                if isinstance(answer, Unconfirmed) and left < self._policy.publish_timeout.total_seconds() / 2:
                    # Its wave was sent late and had too little time: that does not show a stalled route.
                    results[index] = None
                if isinstance(answer, Confirmed) or (isinstance(answer, Unroutable) and self._policy.drop_unroutable):
                    waves.release_next(index)
        return results

    async def _send_wave(self, wave: Sequence[PendingMessage], timeout: timedelta) -> Sequence[SendResult]:
        """Sends the messages. Refuses malformed ones without sending them."""
        now = self._policy.now()
        sendable: list[Message] = []
        for pending in wave:
            if pending.malformed is None:
                # An expiration counts from sending, not from publishing.
                message = pending.message
                expiration = message.expiration or self._policy.expiration
                if expiration is not None:
                    message = replace(message, expiration=expiration, expires_at=now + expiration)
                sendable.append(message)
        results = iter(await self._transport.send(sendable, timeout=timeout) if sendable else ())
        return [next(results) if pending.malformed is None else Refused(pending.malformed) for pending in wave]

    def _outcome(self, pending: PendingMessage, result: _Result) -> RelayOutcome:
        match result:
            case Confirmed():
                return DONE
            case Unroutable():
                if self._policy.drop_unroutable:
                    return DROPPED
                if len(pending.message.routing_key.encode()) > LONGEST_HELD_KEY:
                    return Dead(Cause.REFUSED, UNHOLDABLE)
                return self._holds.hold(_way(pending.message), was_held=pending.held, now=self._policy.now())
            case Unconfirmed() | _Behind():
                return STALLED if can_stall(_way(pending.message)) else RETURNED
            case Refused(failure) if pending.too_large:
                return Dead(Cause.REFUSED, failure)
            case Refused(failure):
                policy, attempt = self._policy, pending.attempts + 1
                # Without an expiration: that begins when the message is sent, and it was not.
                return policy.retry.decide(failure, attempt=attempt, now=policy.now(), expires_at=None)
            case NotSent() | None:
                return RETURNED
            case _:
                assert_never(result)

    def _update_stalls(
        self, claimed: Sequence[PendingMessage], results: Sequence[_Result]
    ) -> tuple[Sequence[RouteStalled], Sequence[Way]]:
        """Derives from the results which routes are newly stalled, and which accept messages again."""
        failures: dict[Way, Failure] = {}
        silent: set[Way] = set()
        confirmed: Counter[Way] = Counter()
        for pending, result in zip(claimed, results, strict=True):
            match result:
                case Unconfirmed(failure):
                    # Silence says more about a route than a refusal, and replaces it.
                    silent.add(way := _way(pending.message))
                    failures[way] = failure
                case Refused(failure, by_queue=True):
                    failures.setdefault(_way(pending.message), failure)
                case Confirmed() if self._probing:
                    confirmed[_way(pending.message)] += 1
                case _:
                    pass
        if self._probing:
            for way in failures:
                self._stalls.record_failure(way, silent=way in silent)
            return (), [way for way in confirmed if way not in failures and self._stalls.record_success(way, confirmed[way])]
        if not failures:
            return (), ()
        passing = {
            _way(pending.message) for pending, result in zip(claimed, results, strict=True) if isinstance(result, Confirmed)
        }
        stalled = []
        for way, failure in failures.items():
            # Others were confirmed on this route: the refusal may be the message's own fault, so probe again at once.
            pause = _ZERO if way in passing and way not in silent else FIRST_PAUSE
            if can_stall(way) and self._stalls.stall(way, silent=way in silent, pause=pause):
                stalled.append(_stalled(self._policy.exchange_name, way, failure))
        return stalled, ()

    def _report(
        self, claimed: Sequence[PendingMessage], results: Sequence[_Result], outcomes: Sequence[RelayOutcome]
    ) -> RoundReport:
        now = self._policy.now()
        sent: list[SentMessage] = []
        failed: list[SendFailed] = []
        released: dict[Way, None] = {}
        unavailable: Failure | None = None
        answering = False
        for pending, result, outcome in zip(claimed, results, outcomes, strict=True):
            message = pending.message
            match result:
                case Confirmed():
                    age = max(now - message.created_at, _ZERO)  # the clocks of two hosts may differ
                    parent = message.headers.get(TRACEPARENT)
                    parent = parent if isinstance(parent, str) else None
                    sent.append(
                        SentMessage(message.id, message.routing_key, age, message.tracking_ids, pending.scheduled, parent)
                    )
                    held, way = pending.held, _way(message)
                    # Nearly always nothing is held: the first check spares most messages the lookup.
                    if (held or self._holds.probing) and self._holds.record_routed(way, was_held=held):
                        released[way] = None
                case Unroutable():
                    failed.append(self._failed(pending, SendFailureType.UNROUTABLE, NO_QUEUE, outcome))
                case Refused(failure):
                    failed.append(self._failed(pending, SendFailureType.REFUSED, failure, outcome))
                case NotSent(failure):
                    failed.append(self._failed(pending, SendFailureType.UNAVAILABLE, failure, outcome))
                    unavailable = failure
                case Unconfirmed(failure):
                    failed.append(self._failed(pending, SendFailureType.UNAVAILABLE, failure, outcome))
                    answering = True
                case None | _Behind():
                    pass  # as if it had not been claimed
                case _:
                    assert_never(result)
        return RoundReport(
            taken=len(claimed),
            sent=sent,
            failed=failed,
            released=tuple(released),
            ordered=any(pending.lane for pending in claimed),
            # An unconfirmed message shows that the broker answers: its route is stalled, and other routes need no pause.
            unavailable=None if answering else unavailable,
        )

    def _failed(self, pending: PendingMessage, type_: SendFailureType, failure: Failure, outcome: RelayOutcome) -> SendFailed:
        message = pending.message
        return SendFailed(
            exchange_name=self._policy.exchange_name,
            message_id=message.id,
            routing_key=message.routing_key,
            type=type_,
            failure=failure,
            outcome=outcome,
            was_held=pending.held,
            tracking_ids=message.tracking_ids,
        )


def _stalled(exchange_name: str, way: Way, failure: Failure) -> RouteStalled:
    return RouteStalled(exchange_name=exchange_name, routing_key=way.routing_key, queue=way.queue, failure=failure)


def _way(message: Message) -> Way:
    return Way(message.routing_key, message.target_queue)
