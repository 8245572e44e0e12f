"""Dead letters behind a service: the same questions and actions, asked of its API."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from outbox.cli.api.client import LARGEST_PAGE, Api, ApiError
from outbox.cli.dlq.decoding import detail_of, letter_of, operation_item_of, operation_of, outcome_word, read, repaired_of
from outbox.cli.dlq.encoding import encode_canary, encode_destination, encode_edit, encoded_selector
from outbox.dead_letters import (
    Action,
    Canary,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    Destination,
    Edit,
    Group,
    GroupBy,
    ItemOutcome,
    Operation,
    OperationItem,
    Plan,
    Repaired,
    Selector,
)
from outbox.dead_letters.actions import encode_filter
from outbox.dead_letters.model import Sort


class RemoteLetters:
    """What the API of a service answers, as the library has it. Operations are done by the service's maintenance."""

    look_again = timedelta(seconds=1)
    counts_to: int | None = 10_000

    def __init__(self, api: Api) -> None:
        self._api = api
        self._confirmation: str | None = None
        """What the plan that was made last allows."""

    # --- reading -------------------------------------------------------------------------------------------------------

    async def list(self, filter_: DeadLetterFilter, *, limit: int, sort: Sort) -> Sequence[DeadLetter]:
        """Up to `limit` that fit."""
        page = await self._api.page("/dlq", limit=limit, sort=sort, **_parameters(filter_))
        return [letter_of(line) for line in page["items"]]

    async def count(self, filter_: DeadLetterFilter) -> int:
        """How many fit, up to what the service counts."""
        page = await self._api.get("/dlq", limit=1, total=True, **_parameters(filter_))
        return int(page["total"]["value"])

    async def groups(self, by: GroupBy, filter_: DeadLetterFilter, *, limit: int) -> Sequence[Group]:
        """Those that fit, counted by what they have in common."""
        answer = await self._api.get("/dlq/groups", by=by, limit=min(limit, LARGEST_PAGE), **_parameters(filter_))
        return [read(Group, group) for group in answer["items"]]

    async def show(self, id_: str, *, reveal: bool) -> DeadLetterDetail | None:
        """The whole of one, masked by the service unless it is to be revealed; None if there is none."""
        with _or_none():
            return detail_of(await self._api.get(f"/dlq/{quote(id_, safe='')}", reveal=reveal or None))
        return None

    async def body(self, id_: str) -> bytes | None:
        """The body of one as it is; None if there is none."""
        with _or_none():
            return await self._api.download(f"/dlq/{quote(id_, safe='')}/body", reveal=True)
        return None

    # --- repairing -----------------------------------------------------------------------------------------------------

    async def plan(
        self, action: Action, selector: Selector, *, destination: Destination | None, force: bool, max_items: int | None
    ) -> Plan:
        """What would be done now. What is asked for next, if it is the same, is thereby confirmed."""
        body = {"destination": encode_destination(destination), "force": force or None, "max_items": max_items}
        answer = await self._dry_run(action, selector, body)
        sample = [detail.letter for each in answer["sample"] if (detail := await self.show(each["id"], reveal=False))]
        return Plan(
            action=action,
            count=answer["count"],
            by_queue=answer["by_queue"],
            by_exception=answer["by_exception"],
            sample=sample,
            warnings=answer["warnings"],
        )

    async def requeue(
        self,
        selector: Selector,
        *,
        destination: Destination | None,
        edit: Edit | None,
        rate: float | None,
        canary: Canary | None,
        stop_ratio: float | None,
        reason: str | None,
        by: str | None,
        force: bool,
        max_items: int | None,
    ) -> Repaired | Operation:
        """Sends them again."""
        del by  # the service knows whose token it is
        body = {
            "destination": encode_destination(destination),
            "edit": encode_edit(edit),
            "rate_per_second": rate,
            "canary": encode_canary(canary),
            "stop_on_failure_ratio": stop_ratio,
            "force": force or None,
            "max_items": max_items,
        }
        return await self._change(Action.REQUEUE, selector, body, reason)

    async def discard(
        self, selector: Selector, *, reason: str | None, by: str | None, max_items: int | None
    ) -> Repaired | Operation:
        """Puts them aside."""
        del by
        return await self._change(Action.DISCARD, selector, {"max_items": max_items}, reason)

    async def restore(
        self, selector: Selector, *, reason: str | None, by: str | None, max_items: int | None
    ) -> Repaired | Operation:
        """Opens discarded ones again."""
        del by
        return await self._change(Action.RESTORE, selector, {"max_items": max_items}, reason)

    async def purge(
        self, selector: Selector, *, reason: str | None, by: str | None, force: bool, max_items: int | None
    ) -> Repaired | Operation:
        """Deletes them for good; the service wants a reason."""
        del by
        return await self._change(Action.PURGE, selector, {"force": force or None, "max_items": max_items}, reason)

    async def _change(
        self, action: Action, selector: Selector, body: Mapping[str, Any], reason: str | None
    ) -> Repaired | Operation:
        """Asks for it, after a dry run where there must be one, and was none."""
        if self._confirmation is None and (isinstance(selector, DeadLetterFilter) or action is Action.PURGE):
            await self._dry_run(action, selector, body)
        confirmation, self._confirmation = self._confirmation, None
        answer = await self._ask(action, selector, {**body, "reason": reason, "confirm_token": confirmation})
        return repaired_of(answer) if "items" in answer else operation_of(answer)

    async def _dry_run(self, action: Action, selector: Selector, body: Mapping[str, Any]) -> Any:
        answer = await self._ask(action, selector, {**body, "dry_run": True})
        self._confirmation = answer["confirm_token"]
        return answer

    async def _ask(self, action: Action, selector: Selector, body: Mapping[str, Any]) -> Any:
        purge = True if action is Action.PURGE else None
        path = "/discard" if purge else f"/{action}"
        return await self._api.post(path, {"selector": encoded_selector(selector), "purge": purge, **body})

    # --- operations ----------------------------------------------------------------------------------------------------

    async def operation(self, number: int) -> Operation | None:
        """The operation of that number; None if there is none."""
        with _or_none():
            return operation_of(await self._api.get(f"/operations/{number}"))
        return None

    async def operations(self, *, going_on: bool, limit: int) -> Sequence[Operation]:
        """Operations, the newest first."""
        page = await self._api.page("/operations", limit=limit, going_on=going_on or None)
        return [operation_of(each) for each in page["items"]]

    async def operation_items(self, number: int, *, outcome: ItemOutcome | None, limit: int) -> Sequence[OperationItem]:
        """What came of the letters of an operation."""
        with _or_none():
            action = (await self._api.get(f"/operations/{number}"))["action"]
            word = None if outcome is None else outcome_word(Action(action), outcome)
            page = await self._api.page(f"/operations/{number}/items", limit=limit, outcome=word)
            return [operation_item_of(each) for each in page["items"]]
        return []

    async def pause(self, number: int) -> Operation:
        """Holds an operation."""
        return operation_of(await self._api.post(f"/operations/{number}/pause"))

    async def resume(self, number: int) -> Operation:
        """Goes on with a paused one."""
        return operation_of(await self._api.post(f"/operations/{number}/resume"))

    async def cancel(self, number: int) -> Operation:
        """Ends one."""
        return operation_of(await self._api.post(f"/operations/{number}/cancel"))

    async def advance(self, number: int) -> int:
        """Nothing: the service does it."""
        del number
        return 0


def _parameters(filter_: DeadLetterFilter) -> Mapping[str, Any]:
    """What of a list is meant. Without a status the API would take the open ones."""
    return {"status": "any", **encode_filter(filter_)}


@contextmanager
def _or_none() -> Iterator[None]:
    """Ends the block where the service knows no such thing."""
    try:
        yield
    except ApiError as error:
        if error.code != "not-found":
            raise
