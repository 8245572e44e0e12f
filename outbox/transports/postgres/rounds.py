"""Rounds of the relay within the database: a hand-over takes, sends and settles in its one statement."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from outbox.core.events import SendFailed, SendFailureType, SentMessage
from outbox.core.message import Way
from outbox.core.outcome import DONE, DROPPED, Cause, Dead, Held, RelayOutcome, Retry
from outbox.engine.rounds import NO_QUEUE, RoundReport, StalledRoutes
from outbox.engine.routes import FIRST_PROBE, LONGEST_PROBE
from outbox.transports.postgres.handover import HandedMessage, HandedOver, HandedState, PostgresHandover, too_large

MOST_KEYS = 1_000
"""Held routing keys whose probe intervals are remembered. Once there are as many, others probe at `LONGEST_PROBE` at once."""
_OUTCOMES: dict[HandedState, RelayOutcome] = {
    HandedState.SENT: DONE,
    HandedState.DROPPED: DROPPED,
    HandedState.HELD: Held(),
    HandedState.PARKED: Dead(Cause.REFUSED, NO_QUEUE),
}
_TYPES = {
    HandedState.TOO_LARGE: SendFailureType.REFUSED,
    HandedState.REFUSED: SendFailureType.REFUSED,
}


class HandoverRounds:
    """Implements Rounds with a hand-over. By the time a round is returned it is committed."""

    def __init__(self, handover: PostgresHandover, *, exchange_name: str) -> None:
        self._handover = handover
        self._exchange_name = exchange_name
        self._intervals: OrderedDict[str, timedelta] = OrderedDict()

    async def start(self, limit: int) -> "FinishedRound | None":
        """See `outbox.engine.rounds.Rounds.start`."""
        longer = {key: min(interval * 2, LONGEST_PROBE) for key, interval in self._intervals.items()}
        first = FIRST_PROBE if len(longer) < MOST_KEYS else LONGEST_PROBE
        handed = await self._handover.hand_over(limit, probe_delays=longer, first_probe=first)
        return FinishedRound(self._report(handed, first)) if handed.messages else None

    async def start_probe(self) -> None:
        """See `outbox.engine.rounds.Rounds.start_probe`. No route stalls within one database."""
        await asyncio.get_running_loop().create_future()

    async def look_for_stalled(self) -> StalledRoutes:
        """See `outbox.engine.rounds.Rounds.look_for_stalled`."""
        return StalledRoutes()

    def _report(self, handed: HandedOver, first_probe: timedelta) -> RoundReport:
        sent: list[SentMessage] = []
        failed: list[SendFailed] = []
        released: dict[Way, None] = {}
        for message in handed.messages:
            if message.state is HandedState.SENT:
                sent.append(SentMessage(message.id, message.routing_key, message.age))
                if self._was_awaited(message):
                    released[Way(message.routing_key, message.queue)] = None
            else:
                failed.append(self._failed(message))
                if message.state is HandedState.HELD and message.queue is None:
                    self._remember(message, first_probe)
        return RoundReport(
            taken=len(handed),
            sent=sent,
            failed=failed,
            released=tuple(released),
            ordered=any(message.ordered for message in handed.messages),
        )

    def _was_awaited(self, message: HandedMessage) -> bool:
        """Whether others wait for the success of this one. Of those for one queue alone only they themselves know."""
        interval = self._intervals.pop(message.routing_key, None) if message.queue is None else None
        return interval is not None or message.was_held

    def _remember(self, message: HandedMessage, first_probe: timedelta) -> None:
        """The interval doubles when the key's probe came back."""
        interval = self._intervals.get(message.routing_key)
        if message.was_held and interval is not None:
            interval = min(interval * 2, LONGEST_PROBE)
        self._intervals[message.routing_key] = interval or first_probe
        if len(self._intervals) > MOST_KEYS:
            self._intervals.popitem(last=False)

    def _failed(self, message: HandedMessage) -> SendFailed:
        outcome = self._outcome(message)
        return SendFailed(
            exchange_name=self._exchange_name,
            message_id=message.id,
            routing_key=message.routing_key,
            type=_TYPES.get(message.state, SendFailureType.UNROUTABLE),
            failure=outcome.failure if isinstance(outcome, Retry | Dead) else NO_QUEUE,
            outcome=outcome,
            was_held=message.was_held,
        )

    def _outcome(self, message: HandedMessage) -> RelayOutcome:
        if message.refused is not None:
            return message.refused
        if message.state is HandedState.TOO_LARGE:
            return Dead(Cause.REFUSED, too_large(self._handover.max_body_bytes))
        if message.state is HandedState.HELD and message.queue is None and not message.was_held:
            # The first of its key that is found so tells of it; the others wait for that one, silently.
            return Held(None if message.routing_key in self._intervals else FIRST_PROBE)
        return _OUTCOMES[message.state]


@dataclass(frozen=True, slots=True)
class FinishedRound:
    """A round with nothing left to do but to tell of it."""

    report: RoundReport

    async def finish(self) -> RoundReport:
        """See `outbox.engine.rounds.Round.finish`."""
        return self.report

    async def abandon(self) -> None:
        """See `outbox.engine.rounds.Round.abandon`; there is nothing left to give back."""
