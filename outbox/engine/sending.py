"""Rounds by way of a Transport: claim rows, send their messages, settle each with its outcome."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from outbox.engine.holding import LONGEST_HELD_KEY, Holds, Way
from outbox.engine.ordering import Waves
from outbox.engine.rounds import RoundReport
from outbox.events import SendFailed, SendFailureType, SentMessage
from outbox.message import Message, PendingMessage
from outbox.outcome import DONE, DROPPED, RETURNED, Cause, Dead, Failure, RelayOutcome
from outbox.ports import Claim, Confirmed, NotSent, Refused, SendResult, Store, Transport, Unroutable
from outbox.retry import RetryPolicy

NO_QUEUE = Failure("unroutable", "no queue is bound for the routing key")
UNHOLDABLE = Failure("unroutable", f"and its routing key is longer than the {LONGEST_HELD_KEY} bytes that can be held")

_NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPolicy:
    """How a relay sends. `expiration` is for rows without one; `drop_unroutable` forgets what nobody is bound for."""

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

    async def start(self, limit: int) -> "SendingRound | None":
        """See `outbox.engine.rounds.Rounds.start`."""
        await self._transport.open()
        claim = await self._store.claim(limit)
        return None if claim is None else SendingRound(claim, self._transport, self._policy, self._holds)


class SendingRound:
    """Claim → send → settle, in the claim's transaction."""

    def __init__(self, claim: Claim, transport: Transport, policy: SendingPolicy, holds: Holds) -> None:
        self._claim = claim
        self._transport = transport
        self._policy = policy
        self._holds = holds

    async def finish(self) -> RoundReport:
        """See `outbox.engine.rounds.Round.finish`."""
        async with self._claim as claim:
            results = await self._send(claim.messages)
            outcomes = [self._outcome(*sent) for sent in zip(claim.messages, results, strict=True)]
            await claim.settle(outcomes)
        return self._report(claim.messages, results, outcomes)

    async def abandon(self) -> None:
        """See `outbox.engine.rounds.Round.abandon`."""
        async with self._claim:
            pass  # unsettled, every message is as it was

    async def _send(self, claimed: Sequence[PendingMessage]) -> Sequence[SendResult | None]:
        """One result for each message, all within `publish_timeout`. None: not sent, for its predecessor was not confirmed."""
        results: list[SendResult | None] = [None] * len(claimed)
        now = asyncio.get_running_loop().time
        deadline = now() + self._policy.publish_timeout.total_seconds()
        waves = Waves(claimed)
        while (wave := waves.next()) and (left := deadline - now()) > 0:
            answers = await self._send_wave([claimed[place] for place in wave], timedelta(seconds=left))
            for place, answer in zip(wave, answers, strict=True):
                results[place] = answer
                if isinstance(answer, Confirmed) or (isinstance(answer, Unroutable) and self._policy.drop_unroutable):
                    waves.passed(place)
        return results

    async def _send_wave(self, wave: Sequence[PendingMessage], timeout: timedelta) -> Sequence[SendResult]:
        """The malformed ones are refused without being sent."""
        now = self._policy.now()
        sendable = [self._stamped(pending.message, now) for pending in wave if pending.malformed is None]
        results = iter(await self._transport.send(sendable, timeout=timeout) if sendable else ())
        return [next(results) if pending.malformed is None else Refused(pending.malformed) for pending in wave]

    def _stamped(self, message: Message, now: datetime) -> Message:
        """The message with the deadline that follows from its expiration, which counts from here."""
        expiration = message.expiration or self._policy.expiration
        return message if expiration is None else replace(message, expiration=expiration, expires_at=now + expiration)

    def _outcome(self, pending: PendingMessage, result: SendResult | None) -> RelayOutcome:
        match result:
            case Confirmed():
                return DONE
            case Unroutable():
                return self._unroutable(pending)
            case Refused(failure):
                policy, attempt = self._policy, pending.attempts + 1
                return policy.retry.decide(failure, attempt=attempt, now=policy.now(), expires_at=None)
            case NotSent() | None:
                return RETURNED
            case _:
                assert_never(result)

    def _unroutable(self, pending: PendingMessage) -> RelayOutcome:
        if self._policy.drop_unroutable:
            return DROPPED
        if len(pending.message.routing_key.encode()) > LONGEST_HELD_KEY:
            return Dead(Cause.REFUSED, UNHOLDABLE)
        return self._holds.hold(_way(pending.message), was_held=pending.held, now=self._policy.now())

    def _report(
        self, claimed: Sequence[PendingMessage], results: Sequence[SendResult | None], outcomes: Sequence[RelayOutcome]
    ) -> RoundReport:
        now = self._policy.now()
        sent: list[SentMessage] = []
        failed: list[SendFailed] = []
        released: dict[Way, None] = {}
        unavailable: Failure | None = None
        for pending, result, outcome in zip(claimed, results, outcomes, strict=True):
            message = pending.message
            match result:
                case Confirmed():
                    sent.append(SentMessage(message.id, message.routing_key, _age(message, now)))
                    if (pending.held or self._holds.probing) and self._holds.routed(_way(message), was_held=pending.held):
                        released[_way(message)] = None
                case Unroutable():
                    failed.append(self._failed(message, SendFailureType.UNROUTABLE, NO_QUEUE, outcome))
                case Refused(failure):
                    failed.append(self._failed(message, SendFailureType.REFUSED, failure, outcome))
                case NotSent(failure):
                    failed.append(self._failed(message, SendFailureType.UNAVAILABLE, failure, outcome))
                    unavailable = failure
                case None:
                    pass  # as if it had not been taken
                case _:
                    assert_never(result)
        return RoundReport(
            taken=len(claimed),
            sent=sent,
            failed=failed,
            released=tuple(released),
            ordered=any(pending.lane for pending in claimed),
            unavailable=unavailable,
        )

    def _failed(self, message: Message, type_: SendFailureType, failure: Failure, outcome: RelayOutcome) -> SendFailed:
        return SendFailed(
            exchange_name=self._policy.exchange_name,
            message_id=message.id,
            routing_key=message.routing_key,
            type=type_,
            failure=failure,
            outcome=outcome,
        )


def _way(message: Message) -> Way:
    return Way(message.routing_key, message.target_queue)


def _age(message: Message, now: datetime) -> timedelta:
    """Clocks may differ; nothing was sent before it was written."""
    return max(now - message.created_at, _NO_TIME)
