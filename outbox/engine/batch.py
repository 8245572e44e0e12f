"""Batches: what has arrived while a handler was busy is handled by its next call, and committed together."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from outbox.core.events import BatchFailed
from outbox.core.outcome import DONE, RETURNED, Dead, DeliveryOutcome
from outbox.core.tracking import follow
from outbox.engine.attempt import EXPIRED, AttemptRunner, Run, WorkerContext, is_for_us
from outbox.engine.consumer import Consumer
from outbox.engine.signature import BatchInputs, Inputs
from outbox.engine.transactions import NotBegunError
from outbox.errors import CommitFailedError, MarkHeldError


@dataclass(slots=True, eq=False)
class _Member:
    """A message that waits for its batch, or is in it. `turn` ends with its outcome, or with None when it is to lead."""

    run: Run
    turn: "asyncio.Future[DeliveryOutcome | None]"
    body: object = None

    def end(self, outcome: DeliveryOutcome) -> None:
        if not self.turn.done():
            self.turn.set_result(outcome)


class BatchCollector:
    """Calls the callback of one consumer with all messages that wait for it, one batch after another.

    The message that comes while no batch runs leads: its task takes all that wait, handles them, gives each its outcome, and
    lets one of those lead that came meanwhile. A batch that fails is handled again one by one, so that a message that cannot be
    handled hurts only itself.
    """

    def __init__(self, consumer: Consumer, runner: AttemptRunner, context: WorkerContext) -> None:
        self._queue = consumer.queue
        self._with_inbox = consumer.inbox
        self._one_by_one = runner
        self._context = context
        self._waiting: list[_Member] = []
        self._busy = False

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """Its outcome, in a batch with others. The time that this took is noted in `run`."""
        loop = asyncio.get_running_loop()
        member = _Member(run, loop.create_future())
        self._waiting.append(member)
        if self._busy:
            outcome = await member.turn
            if outcome is not None:
                return outcome
            member.turn = loop.create_future()
        self._busy = True
        batch: list[_Member] = []
        try:
            await asyncio.sleep(0)  # what arrived together is begun together
            batch, self._waiting = [each for each in self._waiting if not each.turn.done()], []
            if not self._context.stopping.requested:
                await self._attempt_batch(batch)
            member.end(RETURNED)  # it was not begun, or not begun again, because it is time to stop
            return member.turn.result() or RETURNED
        finally:
            for each in batch:  # without an outcome only if this task was cancelled
                each.end(RETURNED)
            # The first that waits leads next. Those that wait are cancelled only all together: none waits for a dead leader.
            following = next((each for each in self._waiting if not each.turn.done()), None)
            self._busy = following is not None
            if following is not None:
                following.turn.set_result(None)

    async def _attempt_batch(self, batch: Sequence[_Member]) -> None:
        """In one call those whose bodies can be read; then, one by one, those that have no outcome after it."""
        began = perf_counter()
        readable = []
        for member in batch:
            try:
                member.body = self._one_by_one.read(member.run)
            except Exception:  # noqa: BLE001, S112  by itself it fails in the same way, and its policy decides
                continue
            if isinstance(member.body, Dead):
                member.end(member.body)
            elif not member.turn.done():
                readable.append(member)
        if len(readable) > 1:
            await self._attempt_together(readable)
            for member in readable:
                member.run.seconds = perf_counter() - began
        for member in batch:
            if not member.turn.done() and not (self._context.stopping.requested and len(batch) > 1):
                member.end(await self._one_by_one.attempt(member.run))

    async def _attempt_together(self, members: Sequence[_Member]) -> None:
        """Gives each of them its outcome, unless the callback failed, or one of them has to be looked at by itself."""
        task = asyncio.current_task()
        try:
            # What a batch publishes is an effect of none of its messages in particular, only of what caused all of them.
            roots = {member.run.message.tracking_ids[:1] for member in members}
            follow(roots.pop() if len(roots) == 1 else ())
            handled = set(await self._call(members))
        except NotBegunError as error:
            # Which of them has expired, or is being handled by another transaction, shows one by one.
            if error.outcome is not EXPIRED and not isinstance(error.__cause__, MarkHeldError):
                for member in members:
                    member.end(error.outcome)
        except BaseException as error:
            if is_for_us(error, task):
                raise
            cause = error.__cause__ if isinstance(error, CommitFailedError) else None
            self._context.observer.notify(
                BatchFailed(
                    queue=self._queue,
                    exchange_name=self._context.exchange_name,
                    messages=[member.run.message for member in members],
                    failure=self._context.describe(cause or error),
                )
            )
        else:
            for member in members:
                member.end(DONE if member in handled else self._one_by_one.duplicate(member.run))

    async def _call(self, members: Sequence[_Member]) -> Sequence[_Member]:
        """Calls the callback with those of the members that were not handled before, and commits; returns those."""
        if self._one_by_one.transactions is None:
            await self._one_by_one.invoke(_inputs(members, {}))
            return members
        async with self._one_by_one.transactions.begin(list({member.run.message.id for member in members})) as unit:
            if self._with_inbox:
                first: dict[str, _Member] = {}
                for member in members:
                    if member.run.message.id in unit.marked:
                        first.setdefault(member.run.message.id, member)
                members = list(first.values())
            if any(self._one_by_one.has_expired(member.run) for member in members):  # while they waited for the transaction
                raise NotBegunError(EXPIRED)
            if members:
                await self._one_by_one.invoke(_inputs(members, unit.resources))
        return members


def _inputs(members: Sequence[_Member], resources: Mapping[str, object]) -> BatchInputs:
    each = [Inputs(member.run.delivery, member.run.message, member.body, resources) for member in members]
    return BatchInputs(each, resources)
