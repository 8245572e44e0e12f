"""Changes of messages that wait: in the outbox cancelled, sent now, rescheduled or edited, in a queue retried, moved or
dead-lettered; and publishing one.

Each is one transaction with its audit entry. What is in flight is skipped: a relay or a worker has it, and its outcome counts.
"""

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

import asyncpg
from fastapi import Path, Response
from pydantic import BeforeValidator, Field, model_validator

from outbox.admin.access import Operator, RequestContext, area, record
from outbox.admin.deliveries import Deliveries, DeliveryFilters, require_deliveries
from outbox.admin.messages import Message, MessageFilters, read, searching, version_of
from outbox.admin.models import Instant, LongText, Model, Moment, Request, Text
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.repairs.once import (
    Answer,
    IdempotencyKey,
    idempotency_lock,
    issue_token,
    require_confirmation,
    respond,
    use,
)
from outbox.admin.repairs.requests import Change, EditRequest, PlainJson, read_edit, require_fitting
from outbox.admin.store import MessageListing
from outbox.chains.traces import ids_of
from outbox.core.codec import OCTETS, RESERVED_PREFIX, encode_body, encode_headers
from outbox.core.failures import FailedAttempt, decode_failures
from outbox.core.message import PublishOptions
from outbox.core.outcome import Cause, Failure
from outbox.dead_letters import Edit, Expected
from outbox.errors import EncodingError
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Payload, Storable
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names
from outbox.publisher import Publisher
from outbox.transports.postgres.leases import lease_token
from outbox.transports.postgres.tables import TransportTables

MOST_AT_ONCE = 10_000
"""Most messages that one request changes."""
MOST_IDS = 1_000
"""Most that it names."""

WaitingState = Literal["pending", "scheduled", "held", "stalled", "blocked", "retrying"]
WaitingAction = Literal["cancel", "send_now", "reschedule", "retry", "move", "dead_letter"]
ChangeOutcome = Literal["done", "skipped", "refused", "not_found"]


def _without_prefix(given: Any) -> Any:
    """Ids of the outbox are also written `outbox-17`."""
    return given.removeprefix("outbox-") if isinstance(given, str) else given


RowId = Annotated[int, Field(ge=1, le=2**63 - 1), BeforeValidator(_without_prefix)]


class WaitingFilters(MessageFilters):
    """Which messages of the outbox: those in one state that fit all else."""

    state: WaitingState


class _Selector(Request):
    """Which messages to change: exactly one of ids and a filter."""

    ids: Annotated[tuple[RowId, ...] | None, Field(min_length=1, max_length=MOST_IDS)] = None
    filter: Request | None = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give either ids or a filter")
        return self

    def named(self) -> Sequence[int]:
        """The ids, each once."""
        return list(dict.fromkeys(self.ids or ()))


class MessageSelector(_Selector):
    """Which messages of the outbox to change: either ids or a filter."""

    filter: WaitingFilters | None = None


class DeliverySelector(_Selector):
    """Which messages in queues to change: either ids or a filter."""

    filter: DeliveryFilters | None = None


class WaitingChange(Change):
    """What every change of waiting messages takes. A filter requires a dry run first, and never means more than that showed."""

    does: ClassVar[WaitingAction]
    selector: _Selector
    max_items: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, description="At most so many, the first in their order.")] = (
        MOST_AT_ONCE
    )

    @property
    def action(self) -> WaitingAction:
        """What is to be done."""
        return self.does

    @property
    def needs_token(self) -> bool:
        """What a filter means may be more than one thinks."""
        return self.selector.filter is not None

    def scope(self) -> Mapping[str, Any]:
        """All but the reason and the dry run itself."""
        return {"action": self.action, **self.model_dump(mode="json", exclude={"reason", "dry_run", "confirm_token"})}

    @abstractmethod
    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """The rows that are named, or the first `most` that the filter means now."""

    @abstractmethod
    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> "Sequence[ChangedItem]":
        """Does it, in the transaction of `connection`, and says what came of each."""


class ChangedItem(Model):
    """One message's part."""

    id: str
    outcome: ChangeOutcome
    reason: str = Field(description="Why it was not done; empty if it was.")


class ChangeResponse(Model):
    """The outcome for each message, in the order of the request."""

    action: WaitingAction
    counts: dict[ChangeOutcome, int]
    items: list[ChangedItem]


class ChangePlan(Model):
    """What a change would do now, and the token that allows it for a quarter of an hour."""

    action: WaitingAction
    count: int = Field(description="How many messages it would change; with the token never more are changed.")
    sample: list[str] = Field(description="The ids of the first of them.")
    confirm_token: str
    token_expires_at: Moment


class MessagesChange(WaitingChange):
    """A change of messages in the outbox."""

    selector: MessageSelector

    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """Those of a filter in the order of the list."""
        if (filter_ := self.selector.filter) is None:
            return self.selector.named()
        return await MessageListing(context.admin.table).ids(connection, filter_.as_filter(), most=most)


class CancelRequest(MessagesChange):
    """Takes messages out of the outbox before they are sent. They become discarded dead letters, and can be restored."""

    does: ClassVar[WaitingAction] = "cancel"

    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> Sequence[ChangedItem]:
        """Parks and discards them, as an operator would by hand."""
        sql = _statements(context.admin.table)
        verdicts = await _verdicts(connection, sql, ids)
        done = [id_ for id_ in ids if verdicts[id_].outcome == "done"]
        await connection.execute(sql["park"], done, "Cancelled: an operator cancelled it before it was sent")
        names = [f"outbox-{id_}" for id_ in done]
        await context.admin.dead_letters.discard_within(connection, names, reason=self.reason, by=context.principal.name)
        return list(verdicts.values())


class SendNowRequest(MessagesChange):
    """Makes messages due now, whatever they wait for: a time, a queue, or an earlier attempt."""

    does: ClassVar[WaitingAction] = "send_now"
    priority: Annotated[int | None, Field(ge=0, le=9, description="Ahead of all with a lower one; null: as it is.")] = None

    @property
    def due(self) -> datetime | None:
        """When they are due; None: now."""
        return None

    @property
    def changes_due(self) -> bool:
        """Whether their time is changed at all."""
        return True

    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> Sequence[ChangedItem]:
        """Changes their time and priority, and wakes a relay."""
        sql = _statements(context.admin.table)
        verdicts = await _verdicts(connection, sql, ids, refuse_ordered=bool(self.priority))
        done = [id_ for id_ in ids if verdicts[id_].outcome == "done"]
        await connection.execute(sql["reschedule"], done, self.due, self.priority, self.changes_due)
        await connection.execute(sql["ring_messages"])
        return list(verdicts.values())


class RescheduleRequest(SendNowRequest):
    """Makes messages due at another time, or gives them another priority, or both."""

    does: ClassVar[WaitingAction] = "reschedule"
    due_at: Annotated[Instant | None, Field(description="When they are due; null: as it is. A past time means now.")] = None

    @property
    def due(self) -> datetime | None:
        """When they are due."""
        return self.due_at

    @property
    def changes_due(self) -> bool:
        """Only if a time is given."""
        return self.due_at is not None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.due_at is None and self.priority is None:
            raise ValueError("give due_at, a priority, or both")
        return self


class DeliveriesChange(WaitingChange):
    """A change of messages in a queue of the database."""

    selector: DeliverySelector

    async def rows(self, context: RequestContext, connection: Connection, most: int) -> Sequence[int]:
        """Those of a filter as they are due."""
        if (filter_ := self.selector.filter) is None:
            return self.selector.named()
        return await Deliveries(context.admin.table).find(connection, filter_, most)


class RetryRequest(DeliveriesChange):
    """Makes deliveries due now that wait for their next attempt."""

    does: ClassVar[WaitingAction] = "retry"

    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> Sequence[ChangedItem]:
        """Makes them due, and wakes a worker."""
        sql = _statements(context.admin.table)
        states = await _states(connection, sql, ids)
        await connection.execute(sql["make_due"], [id_ for id_, state in states.items() if state == "waiting"])
        await connection.execute(sql["ring_deliveries"])
        return [_delivery_item(id_, state, _NOT_LATER) for id_, state in states.items()]


class MoveRequest(DeliveriesChange):
    """Makes deliveries the first or the last of those that are due in their queue."""

    does: ClassVar[WaitingAction] = "move"
    to: Annotated[Literal["front", "back"], Field(description="Before all that are due, or after them.")]

    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> Sequence[ChangedItem]:
        """Changes when they are due, and wakes a worker."""
        sql = _statements(context.admin.table)
        states = await _states(connection, sql, ids, refuse_ordered=True)
        reasons, statement = (_FIXED, "move_to_front") if self.to == "front" else (_NOT_DUE, "make_due")
        await connection.execute(sql[statement], [id_ for id_, state in states.items() if state not in reasons])
        await connection.execute(sql["ring_deliveries"])
        return [_delivery_item(id_, state, reasons) for id_, state in states.items()]


class DeadLetterRequest(DeliveriesChange):
    """Ends deliveries as dead letters, without another attempt."""

    does: ClassVar[WaitingAction] = "dead_letter"

    async def apply(self, context: RequestContext, connection: Connection, ids: Sequence[int]) -> Sequence[ChangedItem]:
        """Ends them as a worker would, with their latest failure, and lets those go that wait for them."""
        admin, sql = context.admin, _statements(context.admin.table)
        states = await _states(connection, sql, ids)
        wanted = [id_ for id_, state in states.items() if state not in _UNTOUCHED]
        ends = TransportTables(admin.table).queries("delivery.sql")
        writer = DeadLetterWriter(admin.masking, Storable(connection.get_settings().server_encoding))
        # All of it is one transaction; the parts are only for the memory that bodies take.
        for start in range(0, len(wanted), _ENDED_TOGETHER):
            token = lease_token(datetime.now(UTC))
            rows = await connection.fetch(sql["take"], wanted[start : start + _ENDED_TOGETHER], token)
            ended = [(row, *_end(writer, row)) for row in rows]
            columns = map(list, zip(*((row["id"], token, *letter) for row, _, letter in ended), strict=True))
            await connection.fetch(ends["dead_letter"], *columns)
            await _record_deaths(connection, sql, [(row, failure) for row, failure, _ in ended], by=context.principal.name)
            keys: dict[str, set[str]] = {}
            for row in rows:
                if row["ordering_key"] is not None:
                    keys.setdefault(row["queue"], set()).add(row["ordering_key"])
            # After the end, in a statement of its own: only that sees what others put off while we waited for our locks.
            for queue, ordering_keys in keys.items():
                await connection.fetch(ends["release"], queue, sorted(ordering_keys))
        await connection.execute(sql["ring_deliveries"])
        return [_delivery_item(id_, state, _UNTOUCHED) for id_, state in states.items()]


_ENDED_TOGETHER = 200
"""Deliveries whose bodies are in memory at a time."""


def _end(writer: DeadLetterWriter, row: Any) -> tuple[Failure, tuple[str, ...]]:
    """What it failed with last, and the arguments of `dead_letter` after id and token."""
    failed_attempts = decode_failures(row["failures"])
    failure = (
        failed_attempts[-1].failure
        if failed_attempts
        else Failure("DeadLettered", "an operator dead-lettered it before it failed")
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
    # Its failures are on record already, and this end is not one more.
    return failure, (*letter[:5], "[]", *letter[6:]) if failed_attempts else letter


async def _record_deaths(
    connection: Connection, sql: Mapping[str, str], deaths: Sequence[tuple[Any, Failure]], *, by: str
) -> None:
    """Writes them to the history, if there is one."""
    storable = Storable(connection.get_settings().server_encoding)
    facts = []
    for row, failure in deaths:
        chain = list(ids_of(row["tracking_ids"])) or [row["message_id"]]
        names = row["message_id"], chain[0], chain[-2] if len(chain) > 1 else None, row["routing_key"], row["queue"]
        facts.append((*names, row["attempt"], storable.text(failure.type), storable.text(failure.message)))
    try:
        async with connection.transaction():
            await connection.execute(sql["died"], *map(list, zip(*facts, strict=True)), storable.text(by))
    except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
        return


_IN_FLIGHT = "it is in flight: its outcome counts"
_GONE = "there is no such row, or not any more"
_UNTOUCHED: Mapping[str, tuple[ChangeOutcome, str]] = {"in_flight": ("skipped", _IN_FLIGHT), "gone": ("not_found", _GONE)}
_NOT_LATER: Mapping[str, tuple[ChangeOutcome, str]] = {**_UNTOUCHED, "due": ("skipped", "it is due already")}
_FIXED: Mapping[str, tuple[ChangeOutcome, str]] = {
    **_UNTOUCHED,
    "ordered": ("refused", "it has an ordering key: it is handled after those before it"),
}
_NOT_DUE: Mapping[str, tuple[ChangeOutcome, str]] = {**_FIXED, "waiting": ("skipped", "it is not due yet")}


def _delivery_item(id_: int, state: str, reasons: Mapping[str, tuple[ChangeOutcome, str]]) -> ChangedItem:
    outcome, reason = reasons.get(state, ("done", ""))
    return ChangedItem(id=str(id_), outcome=outcome, reason=reason)


async def _states(
    connection: Connection, sql: Mapping[str, str], ids: Sequence[int], *, refuse_ordered: bool = False
) -> Mapping[int, str]:
    """What each of the deliveries `ids` is, in their order; those that wait are locked now."""
    found = {row["id"]: row for row in await connection.fetch(sql["lock_deliveries"], ids)}
    return {id_: "ordered" if refuse_ordered and found[id_]["is_ordered"] else found[id_]["state"] for id_ in ids}


async def _verdicts(
    connection: Connection, sql: Mapping[str, str], ids: Sequence[int], *, refuse_ordered: bool = False
) -> Mapping[int, ChangedItem]:
    """What will come of each message of the outbox, in their order; those to be changed are locked now."""
    rows = {row["id"]: row for row in await connection.fetch(sql["lock_messages"], ids)}
    verdicts: dict[int, ChangedItem] = {}
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
                outcome, reason = "skipped", "it was sent already"
            case "parked":
                outcome, reason = "skipped", f"it is parked: requeue or discard the dead letter outbox-{id_}"
            case _ if refuse_ordered and row["is_ordered"]:
                outcome, reason = "refused", "it has an ordering key, whose messages have the priority 0"
        verdicts[id_] = ChangedItem(id=str(id_), outcome=outcome, reason=reason)
    return verdicts


def _statements(table: TableName) -> Mapping[str, str]:
    return queries("waiting.sql", **satellite_names(table.schema), table=table.sql, beyond=">", way="asc", first="-infinity")


async def changed(context: RequestContext, change: WaitingChange, key: str | None) -> Response:
    """Does what is asked for, once, and answers it."""
    area_name = "deliveries" if isinstance(change, DeliveriesChange) else "messages"
    if area_name == "deliveries":
        require_deliveries(context.admin)
    if change.dry_run:
        return respond(Answer(200, {}, (await _plan(context, change)).model_dump_json().encode()))
    async with idempotency_lock(context, key, change) as hold:
        if isinstance(hold, Answer):
            return respond(hold, replayed=True)
        confirmation = await require_confirmation(context, change)
        async with context.admin.changing("changing waiting messages") as connection:
            # What waits changes all the time, so a token bounds the number; ids found now are locked by `apply`, or skipped.
            most = change.max_items if confirmation is None else min(change.max_items, confirmation.expected.count)
            ids = await change.rows(context, connection, most)
            items = await change.apply(context, connection, ids)
            counts = dict(Counter(item.outcome for item in items))
            response = ChangeResponse(action=change.action, counts=counts, items=list(items))
            if confirmation is not None:
                await use(connection, context, change, confirmation)
            done = [item.id for item in items if item.outcome == "done"]
            await record(
                connection,
                context,
                action=f"{area_name}.{change.action}",
                target=f"{area_name} {', '.join(done[:20])}" if len(items) <= 20 else f"{len(items)} {area_name}",
                reason=change.reason,
                details={**change.scope(), "counts": counts, "ids": done[:1_000]},
            )
            answer = Answer(200, {}, response.model_dump_json().encode())
            if hold is not None:
                await hold.store(connection, answer)
        return respond(answer)


async def _plan(context: RequestContext, change: WaitingChange) -> ChangePlan:
    async with searching(context, "planning a change", has_cursor=False) as connection:
        ids = await change.rows(context, connection, change.max_items)
    token = await issue_token(context, change, Expected(len(ids), ""))
    return ChangePlan(
        action=change.action,
        count=len(ids),
        sample=[str(id_) for id_ in ids[:20]],
        confirm_token=token.token,
        token_expires_at=token.expires_at,
    )


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
    responses=documented(*_PROBLEMS),
)
async def cancel(change: CancelRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Takes messages out of the outbox before they are sent.

    Nothing is lost: each becomes a discarded dead letter, which can be restored and requeued. Messages that wait for one of the
    same ordering key go on. What a relay is sending is skipped.
    """
    return await changed(context, change, key)


@messages_router.post(
    "/messages/send-now",
    operation_id="outbox_messages_send_now",
    summary="Send Messages Now",
    response_model=ChangeResponse | ChangePlan,
    responses=documented(*_PROBLEMS),
)
async def send_now(change: SendNowRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Makes messages due now that are scheduled, retried later, held, stalled or blocked.

    A held message is tried, and held again if there is still no queue. One of an ordering key still waits for those before it.
    """
    return await changed(context, change, key)


@messages_router.post(
    "/messages/reschedule",
    operation_id="outbox_messages_reschedule",
    summary="Reschedule Messages",
    response_model=ChangeResponse | ChangePlan,
    responses=documented(*_PROBLEMS),
)
async def reschedule(change: RescheduleRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Makes messages due at another time, or gives them another priority: ahead of others, or behind them."""
    return await changed(context, change, key)


@deliveries_router.post(
    "/deliveries/retry",
    operation_id="outbox_deliveries_retry",
    summary="Retry Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=documented(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def retry(change: RetryRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Makes messages in a queue due now that wait for their next attempt. Queues of the database only."""
    return await changed(context, change, key)


@deliveries_router.post(
    "/deliveries/move",
    operation_id="outbox_deliveries_move",
    summary="Move Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=documented(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def move(change: MoveRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Moves messages to the front or the back of their queue. Queues of the database only.

    At the front, those that wait for their next attempt are due now. What is not due cannot go to the back. Among themselves
    they are in the order of their numbers. One with an ordering key keeps its place.
    """
    return await changed(context, change, key)


@deliveries_router.post(
    "/deliveries/dead-letter",
    operation_id="outbox_deliveries_dead_letter",
    summary="Dead-letter Deliveries",
    response_model=ChangeResponse | ChangePlan,
    responses=documented(*_PROBLEMS, Code.NOT_SUPPORTED),
)
async def dead_letter(change: DeadLetterRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Ends messages in a queue as dead letters, without another attempt. Queues of the database only.

    They keep the failures that they had, and stand in the group of the latest.
    """
    return await changed(context, change, key)


class MessageEditRequest(EditRequest):
    """Another routing key, body or headers, or several of them, for one message that was read at `version`."""

    routing_key: Annotated[Text | None, Field(min_length=1, max_length=255, description="Null: as it is.")] = None
    reason: Annotated[LongText | None, Field(max_length=2_000, description="Why, for the record.")] = None
    force: Annotated[bool, Field(description="Also a body that a consumer's schema refuses.")] = False

    @property
    def changes_payload(self) -> bool:
        """Whether the body or the headers change."""
        return self.has_body or self.headers is not None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not self.changes_payload and self.routing_key is None:
            raise ValueError("an edit changes the routing key, the body or the headers: give at least one of them")
        if self.encoding != "json" and self.has_body and not isinstance(self.body, str):
            raise ValueError(f"with the encoding {self.encoding}, the body is a string")
        return self


@messages_router.patch(
    "/messages/{id}",
    operation_id="outbox_messages_edit",
    summary="Edit Message",
    responses=documented(
        Code.NOT_FOUND,
        Code.CONFLICT,
        Code.VERSION_CONFLICT,
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BODY_TOO_LARGE,
        Code.INVALID_REQUEST,
        Code.DATABASE_UNAVAILABLE,
    ),
)
async def edit_message(
    edit: MessageEditRequest,
    context: Operator,
    id_: Annotated[RowId, Path(alias="id", description="The number of its row.")],
) -> Message:
    """Changes the routing key, the body or the headers of a message before it is sent.

    A body is checked against the schema of the consumers that it is for. What was held or stalled is tried again. The version
    is that of `GET /messages/{id}`: if the message has changed since, nothing is done.
    """
    admin = context.admin
    wanted = read_edit(edit) if edit.changes_payload else None
    async with admin.reading("reading a message", for_change=True) as connection:
        found = await MessageListing(admin.table).one(connection, id_)
    if found is None:
        raise _no_row(id_)
    if wanted is not None and edit.has_body and not edit.force:
        await require_fitting(
            context, wanted, queue=found["target_queue"], routing_key=edit.routing_key or found["routing_key"]
        )
    sql = _statements(admin.table)
    async with admin.changing("editing a message") as connection:
        verdict = (await _verdicts(connection, sql, [id_]))[id_]
        if verdict.outcome == "not_found":
            raise _no_row(id_)
        if verdict.outcome != "done":
            raise Problem(Code.CONFLICT, verdict.reason)
        [row] = map(dict, await connection.fetch(sql["message_to_edit"], id_))
        if version_of(row) != edit.version:
            raise Problem(Code.VERSION_CONFLICT, "it has changed since it was read: look at it again", version=version_of(row))
        routing_key = edit.routing_key or row["routing_key"]
        body, content_type, headers = _edited(row, wanted, edit, routing_key)
        await connection.execute(sql["edit_message"], id_, routing_key, body, content_type, headers)
        await connection.execute(sql["ring_messages"])
        changes = {"body": edit.has_body, "headers": edit.headers is not None}
        keys = {} if edit.routing_key is None else {"routing_key": [row["routing_key"], routing_key]}
        await record(
            connection,
            context,
            action="messages.edit",
            target=f"outbox-{id_}",
            reason=edit.reason,
            details={**changes, **keys, "version": edit.version},
        )
        answer = await read(admin, connection, id_, context.masking, reveal=False)
    if answer is None:
        raise _no_row(id_)
    return answer


def _edited(row: Any, wanted: Edit | None, edit: MessageEditRequest, routing_key: str) -> tuple[bytes, str | None, str | None]:
    """Body, content type and headers as they are after the edit. What belongs to the system in the headers stays."""
    body, content_type, headers = row["body"], row["content_type"], row["headers"]
    try:
        if wanted is not None and edit.has_body:
            body, kind = encode_body(wanted.body, routing_key=routing_key)
            content_type = content_type if kind == OCTETS and content_type is not None else kind
        if edit.headers is not None:
            given = json.loads(encode_headers(edit.headers, routing_key=routing_key) or "{}")
            known = json.loads(headers or "{}")
            kept = {name: value for name, value in known.items() if name.lower().startswith(RESERVED_PREFIX)}
            headers = json.dumps({**given, **kept}) if given or kept else None
    except EncodingError as error:
        raise Problem(Code.INVALID_EDIT, str(error)) from None
    return body, content_type, headers


def _no_row(id_: int) -> Problem:
    return Problem(Code.NOT_FOUND, f"there is no row {id_} in the outbox, or not any more: what was sent is deleted")


class PublishRequest(Request):
    """A message to be published as an application would, such as an event to try a consumer with."""

    routing_key: Annotated[Text, Field(min_length=1, max_length=255)]
    body: Annotated[PlainJson, Field(description="A JSON value; with another `encoding` the text, or the base64 of the bytes.")]
    encoding: Annotated[Literal["json", "text", "base64"], Field(description="What `body` is.")] = "json"
    headers: Annotated[dict[str, PlainJson] | None, Field(max_length=1_000)] = None
    ordering_key: Annotated[Text | None, Field(min_length=1, description="Sent after those of the same key.")] = None
    due_at: Annotated[Instant | None, Field(description="When it is sent; null: now.")] = None
    reason: Annotated[LongText | None, Field(max_length=2_000, description="Why, for the record.")] = None
    force: Annotated[bool, Field(description="Also a body that a consumer's schema refuses.")] = False

    @property
    def action(self) -> str:
        """Publishing."""
        return "publish"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.encoding != "json" and not isinstance(self.body, str):
            raise ValueError(f"with the encoding {self.encoding}, the body is a string")
        return self


class PublishedMessage(Model):
    """What was published."""

    message_id: str
    routing_key: str


@messages_router.post(
    "/messages",
    operation_id="outbox_messages_publish",
    summary="Publish Message",
    status_code=201,
    response_model=PublishedMessage,
    responses=documented(
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BODY_TOO_LARGE,
        Code.REQUEST_RUNNING,
        Code.KEY_REUSED,
        Code.INVALID_REQUEST,
        Code.DATABASE_UNAVAILABLE,
    ),
)
async def publish(request: PublishRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Publishes a message, in one transaction with its audit entry.

    The body is checked against the schema of the consumers that the routing key leads to; `force` skips that.
    """
    payload = read_edit(EditRequest(version=1, body=request.body, encoding=request.encoding, headers=request.headers))
    if not request.force:
        await require_fitting(context, payload, queue=None, routing_key=request.routing_key)
    publisher = Publisher(table_name=str(context.admin.table))
    async with idempotency_lock(context, key, request) as hold:
        if isinstance(hold, Answer):
            return respond(hold, replayed=True)
        async with context.admin.changing("publishing a message") as connection:
            options: PublishOptions = {} if request.due_at is None else {"eta": request.due_at}
            if request.ordering_key is not None:
                options["ordering_key"] = request.ordering_key
            if request.headers is not None:
                options["headers"] = request.headers
            try:
                message_id = await publisher.publish_async(connection, request.routing_key, payload.body, **options)
            except EncodingError as error:
                raise Problem(Code.INVALID_EDIT, str(error)) from None
            response = PublishedMessage(message_id=str(message_id), routing_key=request.routing_key)
            await record(
                connection,
                context,
                action="messages.publish",
                target=response.message_id,
                reason=request.reason,
                details={"routing_key": request.routing_key},
            )
            answer = Answer(201, {}, response.model_dump_json().encode())
            if hold is not None:
                await hold.store(connection, answer)
        return respond(answer)
