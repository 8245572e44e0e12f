"""Batches: what has arrived while a handler was busy is handled by its next call, and committed together."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from outbox.core.events import BatchFailed
from outbox.core.outcome import DONE, RETURNED, Dead, DeliveryOutcome
from outbox.core.tracking import follow
from outbox.engine.attempt import Attempting, Run, Surroundings, is_for_us
from outbox.engine.consumer import Consumer
from outbox.engine.signature import BatchInputs, Inputs
from outbox.engine.transactions import NotBegunError
from outbox.errors import CommitFailedError, MarkHeldError
from outbox.ports import Unit


@dataclass(slots=True)
class _Member:
    """A message that waits for its batch, or is in it. `turn` is done when it is told its outcome, or to lead (None)."""

    run: Run
    turn: "asyncio.Future[DeliveryOutcome | None]"
    body: object = None

    def tell(self, outcome: DeliveryOutcome) -> None:
        if not self.turn.done():
            self.turn.set_result(outcome)


class Batching:
    """Calls the callback of one consumer with all messages that wait for it, one batch after another.

    Whoever comes while nobody is busy leads: its task takes all who wait, handles them, tells each its outcome, and lets one of
    those lead who came meanwhile. A batch that fails is handled again one by one, so that a sick message hurts only itself.
    """

    def __init__(self, consumer: Consumer, attempting: Attempting, surroundings: Surroundings) -> None:
        self._queue = consumer.queue
        self._with_inbox = consumer.inbox
        self._one_by_one = attempting
        self._around = surroundings
        self._waiting: list[_Member] = []
        self._busy = False

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """What became of it, in a batch with others. The time that this took is noted in `run`."""
        member = _Member(run, _future())
        self._waiting.append(member)
        if self._busy:
            outcome = await member.turn
            if outcome is not None:
                return outcome
            member.turn = _future()
        self._busy = True
        return await self._lead(member)

    # --- turns ---------------------------------------------------------------------------------------------------------

    async def _lead(self, leader: _Member) -> DeliveryOutcome:
        batch: list[_Member] = []
        try:
            await asyncio.sleep(0)  # what arrived together is begun together
            batch, self._waiting = [member for member in self._waiting if not member.turn.done()], []
            await self._attempt(batch)
            leader.tell(RETURNED)  # it was not begun, or not begun again, because it is time to stop
            return leader.turn.result() or RETURNED
        finally:
            for member in batch:  # without an outcome only if this task was cancelled
                member.tell(RETURNED)
            self._hand_over()

    def _hand_over(self) -> None:
        """Tells the first who waits to lead. Those who wait are cancelled only all together: none waits for a dead leader."""
        self._busy = False
        for member in self._waiting:
            if not member.turn.done():
                member.turn.set_result(None)
                self._busy = True
                return

    # --- one batch -----------------------------------------------------------------------------------------------------

    async def _attempt(self, batch: Sequence[_Member]) -> None:
        began = perf_counter()
        if self._around.stopping.requested:
            return
        readable = [member for member in batch if self._is_readable(member)]
        if len(readable) > 1:
            await self._attempt_together(readable)
            for member in readable:
                member.run.seconds = perf_counter() - began
        for member in batch:
            if not member.turn.done() and not (self._around.stopping.requested and len(batch) > 1):
                member.tell(await self._one_by_one.attempt(member.run))

    def _is_readable(self, member: _Member) -> bool:
        """Whether the member's body could be read; where it could not, it is told so."""
        try:
            member.body = self._one_by_one.read(member.run)
        except Exception:  # noqa: BLE001  by itself it fails in the same way, and its policy decides
            return False
        if isinstance(member.body, Dead):
            member.tell(member.body)
        return not member.turn.done()

    async def _attempt_together(self, members: Sequence[_Member]) -> None:
        """Tells all of them what became of them, unless the callback failed."""
        task = asyncio.current_task()
        try:
            follow(_common_root(members))
            handled = await self._call(members)
        except BaseException as error:
            if is_for_us(error, task):
                raise
            self._failed(members, error)
            return
        for member in members:
            member.tell(DONE if member in handled else self._one_by_one.duplicate(member.run))

    async def _call(self, members: Sequence[_Member]) -> Sequence[_Member]:
        """Calls the callback with those of the members that were not handled before, and commits; which those were."""
        transactions = self._one_by_one.transactions
        if transactions is None:
            await self._one_by_one.invoke(_inputs(members, {}))
            return members
        async with transactions.begin(list({member.run.message.id for member in members})) as unit:
            fresh = _fresh(members, unit) if self._with_inbox else members
            if fresh:
                self._require_in_time(fresh)
                await self._one_by_one.invoke(_inputs(fresh, unit.resources))
        return fresh

    def _require_in_time(self, members: Sequence[_Member]) -> None:
        """Raises if one of them has expired while they waited for their transaction: by itself it is found out."""
        if any(self._one_by_one.has_expired(member.run) for member in members):
            raise _ExpiredError

    def _failed(self, members: Sequence[_Member], error: BaseException) -> None:
        if isinstance(error, NotBegunError) and not isinstance(error.__cause__, MarkHeldError):
            for member in members:
                member.tell(error.outcome)
        elif not isinstance(error, NotBegunError | _ExpiredError):
            self._around.observer.notify(
                BatchFailed(
                    queue=self._queue,
                    exchange_name=self._around.exchange_name,
                    messages=[member.run.message for member in members],
                    failure=self._around.describe(
                        error.__cause__ if isinstance(error, CommitFailedError) and error.__cause__ else error
                    ),
                )
            )


class _ExpiredError(Exception):
    """One of them has expired."""


def _future() -> "asyncio.Future[DeliveryOutcome | None]":
    return asyncio.get_running_loop().create_future()


def _inputs(members: Sequence[_Member], resources: Mapping[str, object]) -> BatchInputs:
    each = [Inputs(member.run.delivery, member.run.message, member.body, resources) for member in members]
    return BatchInputs(each, resources)


def _fresh(members: Sequence[_Member], unit: Unit) -> Sequence[_Member]:
    """The members that were not handled before, each message once."""
    by_id = {member.run.message.id: member for member in reversed(members) if member.run.message.id in unit.marked}
    return [member for member in members if by_id.get(member.run.message.id) is member]


def _common_root(members: Sequence[_Member]) -> tuple[str, ...]:
    """What is published by a batch is a consequence of none of its messages in particular, only of what caused all of them."""
    roots = {member.run.message.tracking_ids[:1] for member in members}
    return roots.pop() if len(roots) == 1 else ()
