"""Changes of many waiting messages: cancel, send now or reschedule in the outbox; retry, move or dead-letter in a queue.

Each change is one transaction with its audit entry. Messages in flight are skipped, because a relay or worker holds them.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import Response
from pydantic import BeforeValidator, Field, model_validator

from outbox.admin.access import Operator, RequestContext, area, record
from outbox.admin.deliveries import Deliveries, DeliveryFilters, require_deliveries
from outbox.admin.message_list import MessageListing
from outbox.admin.messages import MessageFilters, searching
from outbox.admin.models import Instant, Model, Moment, Request
from outbox.admin.problems import Code, problem_responses
from outbox.admin.repairs.once import (
    IdempotencyKey,
    StoredResponse,
    idempotency_lock,
    issue_token,
    require_confirmation,
    to_response,
    use_token,
)
from outbox.admin.repairs.requests import Change
from outbox.chains.traces import ids_of
from outbox.core.failures import FailedAttempt, decode_failures
from outbox.core.outcome import Cause, Failure
from outbox.dead_letters import Expected
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Payload, Storable
from outbox.postgres.pool import Connection, optional_tables
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.schema.objects import satellite_names
from outbox.transports.postgres.leases import lease_token
from outbox.transports.postgres.tables import TransportTables

MAX_ITEMS = 10_000
"""Maximum number of messages that one request changes."""
MAX_IDS = 1_000
"""Maximum number of ids in one request."""

WaitingState = Literal["pending", "scheduled", "held", "stalled", "blocked", "retrying"]
WaitingAction = Literal["cancel", "send_now", "reschedule", "retry", "move", "dead_letter"]
ChangeOutcome = Literal["done", "skipped", "refused", "not_found"]


RowId = Annotated[
    int,
    Field(ge=1, le=2**63 - 1),
    # Dead letters name rows of the outbox `outbox-17`, and operators copy these ids.
    BeforeValidator(lambda given: given.removeprefix("outbox-") if isinstance(given, str) else given),
]


class WaitingFilters(MessageFilters):
    """Messages of the outbox in one state, which match all other conditions."""

    state: WaitingState


class _Selector(Request):
    """Which messages to change: either `ids` or a filter."""

    ids: Annotated[tuple[RowId, ...] | None, Field(min_length=1, max_length=MAX_IDS)] = None
    filter: Request | None = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give either ids or a filter")
        return self

    def unique_ids(self) -> Sequence[int]:
        """The ids, without repetitions."""
        return list(dict.fromkeys(self.ids or ()))


class MessageSelector(_Selector):
    """Which messages of the outbox to change: either `ids` or `filter`."""

    filter: WaitingFilters | None = None


class DeliverySelector(_Selector):
    """Which messages in queues to change: either `ids` or `filter`."""

    filter: DeliveryFilters | None = None


class WaitingChange(Change):
    """A change of waiting messages. A filter requires a dry run first, and changes at most as many messages as that counted."""

    waiting_action: ClassVar[WaitingAction]
    selector: _Selector
    max_items: Annotated[int, Field(ge=1, le=MAX_ITEMS, description="Maximum number of messages, in list order.")] = MAX_ITEMS

    @property
    def action(self) -> WaitingAction:
        """The action."""
        return self.waiting_action

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first: a filter may match more than expected."""
        return self.selector.filter is not None

    def scope(self) -> Mapping[str, Any]:
        """What a token is bound to: everything except the reason and the dry run itself."""
        return {"action": self.action, **self.model_dump(mode="json", exclude={"reason", "dry_run", "confirm_token"})}

    @abstractmethod
    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """Returns the first `most` of the given ids, or of the rows that match the filter now."""

    @abstractmethod
    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each message, in the order of `ids`, and locks those that will change."""

    @abstractmethod
    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Changes messages that `outcomes` has locked in the transaction of `connection`."""


class ChangedItem(Model):
    """The outcome for one message."""

    id: str
    outcome: ChangeOutcome
    reason: str = Field(description="Why the message was not changed. Empty if it was.")


class ChangeResponse(Model):
    """The outcome for each message, in the order of the request."""

    action: WaitingAction
    counts: dict[ChangeOutcome, int]
    items: list[ChangedItem]


class ChangePlan(Model):
    """Result of a dry run: what the change would do now, and the token that confirms it."""

    action: WaitingAction
    count: int = Field(description="Number of messages that would change. A request with the token changes at most as many.")
    sample: list[str] = Field(description="Ids of the first of these messages.")
    confirm_token: str = Field(description="Pass it with the same request to apply the change. Valid once, for 15 minutes.")
    token_expires_at: Moment


class MessagesChange(WaitingChange):
    """A change of messages in the outbox."""

    selector: MessageSelector

    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """Returns the given ids, or rows that match the filter, in list order."""
        if (filter_ := self.selector.filter) is None:
            return self.selector.unique_ids()[:most]
        return await MessageListing(context.admin.table).ids(connection, filter_.as_filter(), most=most)

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each message, and locks those that will change."""
        return await message_outcomes(connection, sql, ids)


class CancelRequest(MessagesChange):
    """Removes messages from the outbox before they are sent. They become discarded dead letters, and can be restored."""

    waiting_action: ClassVar[WaitingAction] = "cancel"

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each message, and locks those that will be removed."""
        return await message_outcomes(connection, sql, ids, to_remove=not self.dry_run)

    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Parks the messages, and discards the resulting dead letters."""
        sql = waiting_statements(context.admin.table)
        await connection.execute(sql["park"], done, "Cancelled: an operator cancelled it before it was sent")
        names = [f"outbox-{id_}" for id_ in done]
        await context.admin.dead_letters.discard_within(connection, names, reason=self.reason, by=context.principal.name)


class SendNowRequest(MessagesChange):
    """Makes messages due now, regardless of whether they wait for a time, a queue, or a retry."""

    waiting_action: ClassVar[WaitingAction] = "send_now"
    priority: Annotated[int | None, Field(ge=0, le=9, description="New priority, highest first. Null keeps the old one.")] = (
        None
    )

    @property
    def due(self) -> datetime | None:
        """The new due time; None: now."""
        return None

    @property
    def changes_due(self) -> bool:
        """Whether the due time changes."""
        return True

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each message. A priority is refused for messages with an ordering key."""
        return await message_outcomes(connection, sql, ids, refuse_ordered=bool(self.priority))

    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Changes due time and priority, and wakes a relay."""
        sql = waiting_statements(context.admin.table)
        await connection.execute(sql["reschedule"], done, self.due, self.priority, self.changes_due)
        await connection.execute(sql["ring_messages"])


class RescheduleRequest(SendNowRequest):
    """Changes the due time of messages, their priority, or both."""

    waiting_action: ClassVar[WaitingAction] = "reschedule"
    due_at: Annotated[Instant | None, Field(description="New due time; a past time means now. Null keeps it.")] = None

    @property
    def due(self) -> datetime | None:
        """The new due time."""
        return self.due_at

    @property
    def changes_due(self) -> bool:
        """Whether the due time changes."""
        return self.due_at is not None

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if self.due_at is None and self.priority is None:
            raise ValueError("give due_at, a priority, or both")
        return self


class DeliveriesChange(WaitingChange):
    """A change of messages in a queue of the database."""

    selector: DeliverySelector

    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """Returns the given ids, or rows that match the filter, by due time."""
        if (filter_ := self.selector.filter) is None:
            return self.selector.unique_ids()[:most]
        return await Deliveries(context.admin.table).find(connection, filter_, most)


class RetryRequest(DeliveriesChange):
    """Makes deliveries that wait for their next attempt due now."""

    waiting_action: ClassVar[WaitingAction] = "retry"

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each delivery. Those that are due already are skipped."""
        return await _delivery_outcomes(connection, sql, ids, _NOT_RETRIED)

    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Makes the deliveries due, and wakes a worker."""
        sql = waiting_statements(context.admin.table)
        await connection.execute(sql["make_due"], done)
        await connection.execute(sql["ring_deliveries"])


class MoveRequest(DeliveriesChange):
    """Moves deliveries to the front or the back of their queue."""

    waiting_action: ClassVar[WaitingAction] = "move"
    to: Annotated[Literal["front", "back"], Field(description="`front`: before all due deliveries. `back`: after them.")]

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each delivery. Those with an ordering key are refused."""
        reasons = _NOT_MOVED_TO_FRONT if self.to == "front" else _NOT_MOVED_TO_BACK
        return await _delivery_outcomes(connection, sql, ids, reasons, refuse_ordered=True)

    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Changes the due times, and wakes a worker."""
        sql = waiting_statements(context.admin.table)
        await connection.execute(sql["move_to_front" if self.to == "front" else "make_due"], done)
        await connection.execute(sql["ring_deliveries"])


class DeadLetterRequest(DeliveriesChange):
    """Dead-letters deliveries without another attempt."""

    waiting_action: ClassVar[WaitingAction] = "dead_letter"

    async def outcomes(self, connection: Connection, ids: Sequence[int], sql: Mapping[str, str]) -> "Mapping[int, ChangedItem]":
        """Decides the outcome for each delivery."""
        return await _delivery_outcomes(connection, sql, ids, _NOT_CHANGED)

    async def apply(self, context: RequestContext, connection: Connection, done: Sequence[int]) -> None:
        """Dead-letters the deliveries with their latest failure, as a worker would, and releases those blocked by them."""
        admin, sql = context.admin, waiting_statements(context.admin.table)
        ends = TransportTables(admin.table).queries("delivery.sql")
        writer = DeadLetterWriter(admin.masking, Storable(connection.get_settings().server_encoding))
        # Batches limit the memory that bodies take. All batches are in one transaction.
        for start in range(0, len(done), _BATCH_SIZE):
            token = lease_token(datetime.now(UTC))
            rows = await connection.fetch(sql["take"], done[start : start + _BATCH_SIZE], token)
            ended = [(row, *_encode_dead_letter(writer, row)) for row in rows]
            columns = map(list, zip(*((row["id"], token, *letter) for row, _, letter in ended), strict=True))
            await connection.fetch(ends["dead_letter"], *columns)
            await _record_in_history(connection, sql, [(row, failure) for row, failure, _ in ended], by=context.principal.name)
            keys: dict[str, set[str]] = {}
            for row in rows:
                if row["ordering_key"] is not None:
                    keys.setdefault(row["queue"], set()).add(row["ordering_key"])
            # A separate statement with a newer snapshot, because workers may have postponed deliveries of these ordering keys
            # while the statements above waited for locks.
            for queue, ordering_keys in keys.items():
                await connection.fetch(ends["release"], queue, sorted(ordering_keys))
        await connection.execute(sql["ring_deliveries"])


_BATCH_SIZE = 200
"""Deliveries whose bodies are in memory at the same time."""


def _encode_dead_letter(writer: DeadLetterWriter, row: Any) -> tuple[Failure, tuple[str, ...]]:
    """Returns the latest failure, and the arguments of the statement `dead_letter` after id and token."""
    failed_attempts = decode_failures(row["failures"])
    failure = (
        failed_attempts[-1].failure
        if failed_attempts
        else Failure("DeadLettered", "an operator dead-lettered it before any attempt failed")
    )
    letter = writer.of_delivery(
        queue=row["queue"],
        failure=failure,
        failed=FailedAttempt(at=datetime.now(UTC), attempt=row["attempt"], failure=failure),
        cause=Cause.REJECTED.value,
        source="worker",
        words=(row["queue"], row["routing_key"], row["message_id"], row["tracking_ids"]),
        payload=Payload(row["body"], row["content_type"], row["headers"]),
    )
    # Earlier failures are already stored, and an operator's decision is not another failed attempt.
    return failure, (*letter[:5], "[]", *letter[6:]) if failed_attempts else letter


async def _record_in_history(
    connection: Connection, sql: Mapping[str, str], dead_letters: Sequence[tuple[Any, Failure]], *, by: str
) -> None:
    storable = Storable(connection.get_settings().server_encoding)
    facts = []
    for row, failure in dead_letters:
        chain = list(ids_of(row["tracking_ids"])) or [row["message_id"]]
        names = row["message_id"], chain[0], chain[-2] if len(chain) > 1 else None, row["routing_key"], row["queue"]
        facts.append((*names, row["attempt"], storable.text(failure.type), storable.text(failure.message)))
    async with optional_tables(connection):
        await connection.execute(sql["died"], *map(list, zip(*facts, strict=True)), storable.text(by))


_IN_FLIGHT = "it is in flight"
_GONE = "the row does not exist, or was deleted"
_NOT_CHANGED: Mapping[str, tuple[ChangeOutcome, str]] = {"in_flight": ("skipped", _IN_FLIGHT), "gone": ("not_found", _GONE)}
_NOT_RETRIED: Mapping[str, tuple[ChangeOutcome, str]] = {**_NOT_CHANGED, "due": ("skipped", "it is already due")}
_NOT_MOVED_TO_FRONT: Mapping[str, tuple[ChangeOutcome, str]] = {
    **_NOT_CHANGED,
    "ordered": ("refused", "it has an ordering key, whose messages are handled in order"),
}
_NOT_MOVED_TO_BACK: Mapping[str, tuple[ChangeOutcome, str]] = {
    **_NOT_MOVED_TO_FRONT,
    "waiting": ("skipped", "it is not due yet"),
}


async def _delivery_outcomes(
    connection: Connection,
    sql: Mapping[str, str],
    ids: Sequence[int],
    reasons: Mapping[str, tuple[ChangeOutcome, str]],
    *,
    refuse_ordered: bool = False,
) -> Mapping[int, ChangedItem]:
    """Decides the outcome for each delivery by its state, and locks those that will change."""
    rows = {row["id"]: row for row in await connection.fetch(sql["lock_deliveries"], ids)}
    outcomes = {}
    for id_ in ids:
        state = "ordered" if refuse_ordered and rows[id_]["is_ordered"] else rows[id_]["state"]
        outcome, reason = reasons.get(state, ("done", ""))
        outcomes[id_] = ChangedItem(id=str(id_), outcome=outcome, reason=reason)
    return outcomes


async def message_outcomes(
    connection: Connection,
    sql: Mapping[str, str],
    ids: Sequence[int],
    *,
    refuse_ordered: bool = False,
    to_remove: bool = False,
) -> Mapping[int, ChangedItem]:
    """Decides the outcome for each message, in the order of `ids`, and locks those that will change."""
    statement = sql["lock_to_remove" if to_remove else "lock_messages"]
    rows = {row["id"]: row for row in await connection.fetch(statement, ids)}
    outcomes: dict[int, ChangedItem] = {}
    for id_ in ids:
        row = rows[id_]
        outcome: ChangeOutcome = "done"
        reason = ""
        match row["state"]:
            case "gone":
                outcome, reason = "not_found", _GONE
            case "in_flight":
                outcome, reason = "skipped", _IN_FLIGHT
            case "sent":
                outcome, reason = "skipped", "it was already sent"
            case "parked":
                outcome, reason = "skipped", f"it is parked: requeue or discard the dead letter outbox-{id_}"
            case _ if refuse_ordered and row["is_ordered"]:
                outcome, reason = "refused", "it has an ordering key, whose messages must have priority 0"
        outcomes[id_] = ChangedItem(id=str(id_), outcome=outcome, reason=reason)
    return outcomes


def _done(outcomes: Mapping[int, ChangedItem]) -> Sequence[int]:
    return [id_ for id_, item in outcomes.items() if item.outcome == "done"]


def waiting_statements(table: TableName) -> Mapping[str, str]:
    """The statements that change waiting messages of an outbox and its queues."""
    names = {**satellite_names(table.schema), "table": table.sql, "beyond": ">", "way": "asc", "first": "-infinity"}
    to_remove = query("waiting.sql", "lock_messages", table=table.sql, lock="update")
    return {**queries("waiting.sql", **names, lock="no key update"), "lock_to_remove": to_remove}


async def _apply_change(context: RequestContext, change: WaitingChange, key: str | None) -> Response:
    """Applies a change once per idempotency key, or plans it for a dry run, and returns the response."""
    area_name = "deliveries" if isinstance(change, DeliveriesChange) else "messages"
    if area_name == "deliveries":
        require_deliveries(context.admin)
    sql = waiting_statements(context.admin.table)
    if change.dry_run:
        async with searching(context, "planning a change", has_cursor=False) as connection:
            ids = await change.rows(context, connection, change.max_items)
        if change.selector.filter is None:
            # A filter selects messages that can change, but given ids may be of any message, or of none.
            async with context.admin.changing("planning a change") as connection:
                ids = _done(await change.outcomes(connection, ids, sql))
        token = await issue_token(context, change, Expected(len(ids), ""))
        plan = ChangePlan(
            action=change.action,
            count=len(ids),
            sample=[str(id_) for id_ in ids[:20]],
            confirm_token=token.token,
            token_expires_at=token.expires_at,
        )
        return to_response(StoredResponse(200, {}, plan.model_dump_json().encode()))
    async with idempotency_lock(context, key, change) as lock:
        if isinstance(lock, StoredResponse):
            return to_response(lock, replayed=True)
        confirmation = await require_confirmation(context, change)
        async with context.admin.changing("changing waiting messages") as connection:
            # Waiting messages change all the time, so a token limits their number instead of fixing which ones. The rows found
            # here are locked by `outcomes`, which skips those that a relay or worker took in between.
            most = change.max_items if confirmation is None else min(change.max_items, confirmation.expected.count)
            ids = await change.rows(context, connection, most)
            outcomes = await change.outcomes(connection, ids, sql)
            await change.apply(context, connection, _done(outcomes))
            items = list(outcomes.values())
            counts = dict(Counter(item.outcome for item in items))
            response = ChangeResponse(action=change.action, counts=counts, items=items)
            if confirmation is not None:
                # In the transaction of the change: a second request with the token waits here for the first, and is refused.
                await use_token(connection, context, change, confirmation)
            # The audit comes last: until the commit, no other entry can be written.
            done = [item.id for item in items if item.outcome == "done"]
            await record(
                connection,
                context,
                action=f"{area_name}.{change.action}",
                target=f"{area_name} {', '.join(done[:20])}" if len(items) <= 20 else f"{len(items)} {area_name}",
                reason=change.reason,
                details={**change.scope(), "counts": counts, "ids": done[:1_000]},
            )
            answer = StoredResponse(200, {}, response.model_dump_json().encode())
            if lock is not None:
                await lock.store(connection, answer)
        return to_response(answer)


_PROBLEMS = (
    Code.BODY_TOO_LARGE,
    Code.CONFIRMATION_REQUIRED,
    Code.FILTER_TOO_BROAD,
    Code.REQUEST_RUNNING,
    Code.KEY_REUSED,
    Code.INVALID_REQUEST,
    Code.DATABASE_UNAVAILABLE,
)

messages_router = area("messages")
deliveries_router = area("deliveries")


@messages_router.post(
    "/messages/cancel",
    operation_id="outbox_messages_cancel",
    summary="Cancel Messages",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS),
)
async def cancel(change: CancelRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Removes messages from the outbox before they are sent.

    Nothing is lost: each message becomes a discarded dead letter, which can be restored and requeued. Later messages of the
    same ordering key are no longer blocked by it. Messages that a relay is sending are skipped.
    """
    return await _apply_change(context, change, key)


@messages_router.post(
    "/messages/send-now",
    operation_id="outbox_messages_send_now",
    summary="Send Messages Now",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS),
)
async def send_now(change: SendNowRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Makes scheduled, retrying, held, stalled and blocked messages due now.

    A relay tries a held message again, and holds it again if there is still no queue. A message with an ordering key still
    waits for the earlier messages of that key.
    """
    return await _apply_change(context, change, key)


@messages_router.post(
    "/messages/reschedule",
    operation_id="outbox_messages_reschedule",
    summary="Reschedule Messages",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS),
)
async def reschedule(change: RescheduleRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Changes the due time of messages, their priority, or both."""
    return await _apply_change(context, change, key)


@deliveries_router.post(
    "/deliveries/retry",
    operation_id="outbox_deliveries_retry",
    summary="Retry Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def retry(change: RetryRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Makes messages in a queue that wait for their next attempt due now. Only for queues in PostgreSQL."""
    return await _apply_change(context, change, key)


@deliveries_router.post(
    "/deliveries/move",
    operation_id="outbox_deliveries_move",
    summary="Move Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def move(change: MoveRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Moves messages to the front or the back of their queue. Only for queues in PostgreSQL.

    Moving a message that waits for its next attempt to the front makes it due now. Messages that are not due cannot be moved to
    the back. Moved messages are sorted by id. Messages with an ordering key are refused.
    """
    return await _apply_change(context, change, key)


@deliveries_router.post(
    "/deliveries/dead-letter",
    operation_id="outbox_deliveries_dead_letter",
    summary="Dead-letter Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=problem_responses(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def dead_letter(change: DeadLetterRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Dead-letters messages in a queue without another attempt. Only for queues in PostgreSQL.

    They keep their earlier failures, and belong to the group of the latest one.
    """
    return await _apply_change(context, change, key)
