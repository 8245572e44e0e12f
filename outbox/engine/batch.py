"""Batches: messages that arrive while a handler is busy are handled by its next call, and committed together."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from outbox.core.codec import BODY_STORE
from outbox.core.events import BatchFailed
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Done, Failure
from outbox.core.tracking import follow
from outbox.engine.attempt import EXPIRED, AttemptRunner, Run, WorkerContext, is_for_us, refuse_unstarted
from outbox.engine.consumer import Consumer
from outbox.engine.signature import BatchInputs, Inputs
from outbox.engine.transactions import NotBegunError
from outbox.errors import CommitFailedError, MarkHeldError, TransactionEndedError


@dataclass(slots=True, eq=False)
class _Member:
    """A message waiting for its batch, or in it. `future` resolves to its outcome, or to None when it must lead a batch."""

    run: Run
    future: "asyncio.Future[DeliveryOutcome | None]"
    body: object = None

    def resolve(self, outcome: DeliveryOutcome) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class BatchCollector:
    """Calls the callback of one consumer with all waiting messages, one batch after another.

    A message that arrives while no batch runs becomes the leader: its task takes all waiting messages, handles them, and
    resolves their outcomes. Then the first message that arrived meanwhile leads the next batch. After a failed batch each
    message is handled by itself, so that a bad message fails alone.
    """

    def __init__(self, consumer: Consumer, runner: AttemptRunner, context: WorkerContext) -> None:
        self._queue = consumer.queue
        self._with_inbox = consumer.inbox
        self._runner = runner
        self._context = context
        self._waiting: list[_Member] = []
        self._busy = False

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """Handles the message in a batch and returns its outcome. Sets `run.seconds`."""
        loop = asyncio.get_running_loop()
        member = _Member(run, loop.create_future())
        self._waiting.append(member)
        if self._busy:
            outcome = await member.future
            if outcome is not None:
                return outcome
            # The first future has only chosen the leader; the outcome needs another one.
            member.future = loop.create_future()
        self._busy = True
        batch: list[_Member] = []
        try:
            # Messages that arrived in the same read have tasks that have not run yet: let them join this batch.
            await asyncio.sleep(0)
            batch, self._waiting = [each for each in self._waiting if not each.future.done()], []
            if not self._context.stopping.requested:
                await self._attempt_batch(batch)
            member.resolve(RETURNED)  # not handled, or not handled again, because the worker stops
            return member.future.result() or RETURNED
        finally:
            for each in batch:  # has no effect unless this task was cancelled
                each.resolve(RETURNED)
            # The first waiting message leads next. Waiting tasks are only ever cancelled all together, so none can wait for a
            # leader that was cancelled.
            following = next((each for each in self._waiting if not each.future.done()), None)
            self._busy = following is not None
            if following is not None:
                following.future.set_result(None)

    async def _attempt_batch(self, batch: Sequence[_Member]) -> None:
        """Handles the readable messages in one call, then each message without an outcome by itself."""
        began = perf_counter()
        readable = await self._read(batch)
        if len(readable) > 1:
            span, result = self._runner.begin_batch_span([member.run for member in readable]), None
            try:
                result = await self._attempt_together(readable)
            finally:
                if span is not None:
                    span.end(sys.exception() if result is None else result)
            for member in readable:
                member.run.seconds = perf_counter() - began
        for member in batch:
            # One by one, a failed batch takes as many handlers as it has messages: a worker that stops returns them instead.
            if not member.future.done() and not (self._context.stopping.requested and len(batch) > 1):
                member.resolve(await self._runner.attempt(member.run))

    async def _read(self, batch: Sequence[_Member]) -> list[_Member]:
        """Decodes the bodies, and returns the members that one call can handle. Resolves those that cannot be handled."""
        readable = []
        if stored := [member.run for member in batch if BODY_STORE in member.run.message.headers]:
            await asyncio.gather(*map(self._runner.fetch, stored))
        for member in batch:
            try:
                member.body = self._runner.read(member.run)
            except NotBegunError as error:
                member.resolve(error.outcome)
                continue
            except Exception:  # noqa: BLE001, S112  handled by itself below, it fails the same way and is retried or dead
                continue
            if not member.future.done():
                readable.append(member)
        return readable

    async def _attempt_together(self, members: Sequence[_Member]) -> Done | Failure:
        """Handles the members in one call. Leaves them without an outcome if each has to be handled by itself.

        Returns the failure of the call, `DONE` without one.
        """
        task = asyncio.current_task()
        try:
            # A message published by a batch has no single cause among its messages. It joins their chain if they share one.
            roots = {member.run.message.tracking_ids[:1] for member in members}
            follow(roots.pop() if len(roots) == 1 else (), (None, self._queue))
            handled = set(await self._call(members))
        except NotBegunError as error:
            # Handling each by itself shows which one has expired or is being handled by another transaction.
            if error.outcome is not EXPIRED and not isinstance(error.__cause__, MarkHeldError):
                for member in members:
                    member.resolve(error.outcome)
        except BaseException as error:
            if is_for_us(error, task):
                raise
            cause = error.__cause__ if isinstance(error, CommitFailedError) else None
            failure = self._context.describe(cause or error)
            self._context.observer.notify(
                BatchFailed(
                    queue=self._queue,
                    exchange_name=self._context.exchange_name,
                    messages=[member.run.message for member in members],
                    failure=failure,
                )
            )
            if isinstance(error, TransactionEndedError):
                # The marks may be committed: handled by itself, each message would be taken for a duplicate.
                for member in members:
                    member.resolve(Dead(Cause.REJECTED, failure))
            return failure
        else:
            for member in members:
                member.resolve(DONE if member in handled else self._runner.report_duplicate(member.run))
        return DONE

    async def _call(self, members: Sequence[_Member]) -> Sequence[_Member]:
        """Calls the callback with the members that were not handled before, commits, and returns those members."""
        if self._runner.transactions is None:
            refuse_unstarted(await self._runner.invoke(_inputs(members, {})))
            return members
        async with self._runner.transactions.begin(list({member.run.message.id for member in members})) as unit:
            if self._with_inbox:
                first: dict[str, _Member] = {}
                for member in members:
                    if member.run.message.id in unit.marked:
                        first.setdefault(member.run.message.id, member)
                members = list(first.values())
            if any(self._runner.has_expired(member.run) for member in members):  # while they waited for the transaction
                raise NotBegunError(EXPIRED)
            if members:
                refuse_unstarted(await self._runner.invoke(_inputs(members, unit.resources)))
        return members


def _inputs(members: Sequence[_Member], resources: Mapping[str, object]) -> BatchInputs:
    each = [Inputs(member.run.delivery, member.run.message, member.body, resources) for member in members]
    return BatchInputs(each, resources)
