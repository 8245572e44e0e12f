"""Dead letters in the database itself: what the library does with them, masked for the terminal, and written to the audit."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from outbox.cli.api.opening import whoever
from outbox.cli.dlq.encoding import encoded_selector
from outbox.cli.dlq.showing import masked
from outbox.dead_letters import Action, Also, DeadLetterDetail, DeadLetters, Expected, Operation, Plan, Repaired, Selector
from outbox.masking import Masking
from outbox.postgres.audit import Entry, write_entry
from outbox.postgres.pool import Connection, connect_to, unavailable_errors
from outbox.postgres.schema.objects import outbox_table


class DirectLetters(DeadLetters):
    """The library's own, each change in the audit, and the batches of operations done in this process."""

    look_again = timedelta(milliseconds=200)
    counts_to: int | None = None

    def __init__(self, url: str, *, table_name: str, masking: Masking, **places: Any) -> None:
        super().__init__(url, table_name=table_name, masking=masking, **places)
        self._connect = connect_to(url, application_name="outbox dead letters")
        self._table = outbox_table(table_name)
        self._masking = masking
        self._agreed: Expected | None = None

    async def show(self, id_: str, *, reveal: bool) -> DeadLetterDetail | None:
        """The whole of one, masked unless it is to be revealed, which the audit tells; None if there is none."""
        detail = await self.get(id_)
        if detail is None or not reveal:
            return None if detail is None else masked(detail, self._masking)
        await self._seen("dlq.reveal", id_)
        return detail

    async def body(self, id_: str) -> bytes | None:
        """The body of one as it is, which the audit tells; None if there is none."""
        detail = await self.get(id_)
        if detail is None:
            return None
        await self._seen("dlq.download", id_)
        return detail.body

    async def plan(self, action: Action | str, selector: Selector, **options: Any) -> Plan:
        """What would be done now. If it would be done to other letters by then, or some have changed, it is not done."""
        plan = await super().plan(action, selector, **options)
        self._agreed = plan.expected
        return plan

    async def requeue(self, selector: Selector, **options: Any) -> Repaired | Operation:
        """Sends them again."""
        also = self._written("dlq.requeue", selector, options)
        return await super().requeue(selector, expected=self._agreed, also=also, **options)

    async def discard(self, selector: Selector, **options: Any) -> Repaired | Operation:
        """Puts them aside."""
        also = self._written("dlq.discard", selector, options)
        return await super().discard(selector, expected=self._agreed, also=also, **options)

    async def restore(self, selector: Selector, **options: Any) -> Repaired | Operation:
        """Opens discarded ones again."""
        also = self._written("dlq.restore", selector, options)
        return await super().restore(selector, expected=self._agreed, also=also, **options)

    async def purge(self, selector: Selector, **options: Any) -> Repaired | Operation:
        """Deletes them for good."""
        also = self._written("dlq.purge", selector, options)
        return await super().purge(selector, expected=self._agreed, also=also, **options)

    async def pause(self, number: int, **options: Any) -> Operation:
        """Holds an operation."""
        return await super().pause(number, also=self._changed("operations.pause"), **options)

    async def resume(self, number: int, **options: Any) -> Operation:
        """Goes on with a paused one."""
        return await super().resume(number, also=self._changed("operations.resume"), **options)

    async def cancel(self, number: int, **options: Any) -> Operation:
        """Ends one."""
        return await super().cancel(number, also=self._changed("operations.cancel"), **options)

    async def advance(self, number: int) -> int:
        """Does a batch of an operation; how many letters that were."""
        return await (await self.runner()).run_once(number)

    def _written(self, action: str, selector: Selector, options: Mapping[str, Any]) -> Also[Repaired | Operation]:
        """Writes down who did what to which letters, and what came of it."""

        async def also(connection: Connection, answer: Repaired | Operation) -> None:
            if isinstance(answer, Operation):
                came_of_it: Mapping[str, Any] = {"operation": str(answer.id), "total": answer.total}
            else:
                came_of_it = {"done": answer.done}
            details = {"selector": encoded_selector(selector), **came_of_it}
            await self._write(connection, action, reason=options["reason"], details=details, by=options["by"])

        return also

    def _changed(self, action: str) -> Also[Operation]:
        async def also(connection: Connection, operation: Operation) -> None:
            await self._write(connection, action, target=f"operation {operation.id}")

        return also

    async def _seen(self, action: str, id_: str) -> None:
        """Written down before it is shown, so that nothing is shown of which nobody could learn who saw it."""
        with unavailable_errors("writing down who sees a payload"):
            async with self._connect() as connection:
                await self._write(connection, action, target=id_)

    async def _write(self, connection: Connection, action: str, *, by: str | None = None, **what: Any) -> None:
        entry = Entry(actor=f"cli:{by}" if by else whoever(), role="admin", action=action, **what)
        await write_entry(connection, self._table, entry)
