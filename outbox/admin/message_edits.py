"""Changes of one message: edit it in the outbox before it is sent, or publish a new one.

Each change is one transaction with its audit entry.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from fastapi import Path, Response
from pydantic import Field, model_validator

from outbox.admin.access import Operator, area, record
from outbox.admin.admin import Admin
from outbox.admin.message_changes import RowId, message_outcomes, waiting_statements
from outbox.admin.message_list import MessageListing
from outbox.admin.messages import Message, read, version_of
from outbox.admin.models import DestinationName, Instant, LongText, Model, Request, Text
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.admin.repairs.edits import read_edit, require_valid_body
from outbox.admin.repairs.once import IdempotencyKey, StoredResponse, idempotency_lock, to_response
from outbox.admin.repairs.requests import EditRequest, PlainJson
from outbox.core.codec import RESERVED_PREFIX, decode_headers, edited_content_type, edited_headers, encode_body
from outbox.core.destinations import DEFAULT
from outbox.core.message import PublishOptions
from outbox.dead_letters import Edit
from outbox.errors import ConfigurationError, EncodingError, MalformedMessageError, RefusedError
from outbox.postgres.queries import query
from outbox.postgres.relays import no_table
from outbox.postgres.schema.objects import destination_table, outbox_names
from outbox.publisher import Publisher

router = area("messages")


class MessageEditRequest(EditRequest):
    """New routing key, body or headers for one message. At least one of them is required."""

    routing_key: Annotated[Text | None, Field(min_length=1, max_length=255, description="Null keeps the current one.")] = None
    reason: Annotated[LongText | None, Field(max_length=2_000, description="Reason for the audit log.")] = None
    force: Annotated[bool, Field(description="Accept a body that does not match a consumer's schema.")] = False

    @property
    def action(self) -> str:
        """The action, for the idempotency key."""
        return "edit"

    @property
    def changes_payload(self) -> bool:
        """Whether the body or the headers change."""
        return self.has_body or self.headers is not None

    # Overrides the validator of the base class, for which an edit of the routing key alone would be empty.
    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.changes_payload and self.routing_key is None:
            raise ValueError("give at least one of routing_key, body and headers")
        return self


@router.patch(
    "/messages/{id}",
    operation_id="outbox_messages_edit",
    summary="Edit Message",
    response_model=Message,
    responses=problem_responses(
        Code.NOT_FOUND,
        Code.VERSION_CONFLICT,
        Code.REQUEST_RUNNING,
        Code.KEY_REUSED,
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BODY_TOO_LARGE,
        Code.INVALID_REQUEST,
        Code.DATABASE_UNAVAILABLE,
        Code.BODY_STORE_UNAVAILABLE,
        Code.KEYS_UNAVAILABLE,
    ),
)
async def edit_message(
    edit: MessageEditRequest,
    context: Operator,
    id_: Annotated[RowId, Path(alias="id", description="Number of the row.")],
    key: IdempotencyKey = None,
) -> Response:
    """Changes the routing key, body or headers of a message before it is sent.

    A new body is checked against the schemas of its consumers. A held or stalled message is tried again. `version` is the one
    that `GET /messages/{id}` returned; if the message has changed since, the response is `version_conflict`.
    """
    async with idempotency_lock(context, key, edit, id_) as lock:
        if isinstance(lock, StoredResponse):
            return to_response(lock, replayed=True)
        admin = context.admin
        wanted = read_edit(edit) if edit.changes_payload else None
        async with admin.reading("reading a message", for_change=True) as connection:
            found = await MessageListing(admin.table).one(connection, id_)
        if found is None:
            raise _not_found(id_)
        if wanted is not None and not edit.force:
            await require_valid_body(
                context,
                wanted,
                queue=found["target_queue"],
                routing_key=edit.routing_key or found["routing_key"],
                headers=_headers_of(found),
            )
        # Before the transaction, because a large body is stored elsewhere. The version shows if the message has changed since.
        new = await _new_body(admin, found, wanted, edit) if wanted is not None and edit.has_body else None
        sql = waiting_statements(admin.table)
        async with admin.changing("editing a message") as connection:
            expected = (await message_outcomes(connection, sql, [id_]))[id_]
            if expected.outcome == "not_found":
                raise _not_found(id_)
            if expected.outcome != "done":
                raise Problem(Code.CONFLICT, expected.reason)
            [row] = map(dict, await connection.fetch(sql["message_to_edit"], id_))
            _require_version(row, edit)
            routing_key = edit.routing_key or row["routing_key"]
            body, content_type, headers = _apply_edit(row, new, edit, routing_key)
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
            message, _ = await read(admin, connection, id_, context.masking)
            if message is None:
                raise _not_found(id_)
            answer = StoredResponse(200, {}, message.model_dump_json().encode())
            if lock is not None:
                await lock.store(connection, answer)
        return to_response(answer)


_NewBody = tuple[bytes, dict[str, Any], str]
"""A new body as it is written, the headers that belong to it, and the content type that it has by itself."""


async def _new_body(admin: Admin, row: Any, wanted: Edit, edit: MessageEditRequest) -> _NewBody:
    _require_version(row, edit)
    try:
        body, kind = encode_body(wanted.body, routing_key=row["routing_key"])
        return *await admin.bodies.write(body, row["headers"], row["message_id"]), kind
    except (EncodingError, RefusedError) as error:
        raise Problem(Code.INVALID_EDIT, str(error)) from None


def _require_version(row: Any, edit: MessageEditRequest) -> None:
    if version_of(row) != edit.version:
        raise Problem(Code.VERSION_CONFLICT, "the message has changed: read it again", version=version_of(row))


def _apply_edit(
    row: Any, new: _NewBody | None, edit: MessageEditRequest, routing_key: str
) -> tuple[bytes, str | None, str | None]:
    """Returns body, content type and headers after the edit. Reserved headers, and those of the body, keep their values."""
    body, content_type, headers = row["body"], row["content_type"], row["headers"]
    own: dict[str, Any] | None = None
    if new is not None:
        body, own, kind = new
        content_type = edited_content_type(content_type, kind)
    try:
        headers = edited_headers(headers, edit.headers, own, routing_key=routing_key)
    except EncodingError as error:
        raise Problem(Code.INVALID_EDIT, str(error)) from None
    if edit.headers is not None:
        reserved = {name: value for name, value in _headers_of(row).items() if name.lower().startswith(RESERVED_PREFIX)}
        headers = json.dumps({**json.loads(headers or "{}"), **reserved}) if headers or reserved else None
    return body, content_type, headers


def _headers_of(row: Any) -> Mapping[str, Any]:
    """Returns the headers before the edit; none if another program wrote what is no JSON object."""
    with suppress(MalformedMessageError):
        return decode_headers(row["headers"], source="headers")
    return {}


def _not_found(id_: int) -> Problem:
    return Problem(Code.NOT_FOUND, f"the outbox has no row {id_}: it may have been deleted after sending")


class PublishRequest(Request):
    """A message to publish, as an application would. Useful to test a consumer."""

    routing_key: Annotated[Text, Field(min_length=1, max_length=255)]
    body: Annotated[PlainJson, Field(description="A JSON value; with the encodings `text` and `base64`, a string.")]
    encoding: Annotated[Literal["json", "text", "base64"], Field(description="Encoding of `body`.")] = "json"
    content_type: Annotated[
        Text | None,
        Field(
            description="Media type of the body. Null: `application/json`, or with the encodings `text` and `base64` "
            "`application/octet-stream`. JSON in a string, with the encoding `text`, is published as it is written."
        ),
    ] = None
    headers: Annotated[dict[str, PlainJson] | None, Field(max_length=1_000)] = None
    ordering_key: Annotated[Text | None, Field(min_length=1, description="Messages with one key are sent in order.")] = None
    due_at: Annotated[Instant | None, Field(description="When to send the message. Null: now.")] = None
    destinations: Annotated[
        list[DestinationName],
        Field(min_length=1, max_length=20, description="Each sends it. The rules of publishers do not apply."),
    ] = [DEFAULT]  # noqa: RUF012  pydantic copies it
    reason: Annotated[LongText | None, Field(max_length=2_000, description="Reason for the audit log.")] = None
    force: Annotated[bool, Field(description="Accept a body that does not match a consumer's schema.")] = False

    @property
    def action(self) -> str:
        """The action, for the idempotency key."""
        return "publish"

    @model_validator(mode="after")
    def _require_string(self) -> Self:
        if self.encoding != "json" and not isinstance(self.body, str):
            raise ValueError(f"with the encoding {self.encoding}, the body must be a string")
        return self


class PublishedMessage(Model):
    """A published message."""

    message_id: str
    routing_key: str


@router.post(
    "/messages",
    operation_id="outbox_messages_publish",
    summary="Publish Message",
    status_code=201,
    response_model=PublishedMessage,
    responses=problem_responses(
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BODY_TOO_LARGE,
        Code.REQUEST_RUNNING,
        Code.KEY_REUSED,
        Code.INVALID_REQUEST,
        Code.DATABASE_UNAVAILABLE,
        Code.BODY_STORE_UNAVAILABLE,
        Code.KEYS_UNAVAILABLE,
    ),
)
async def publish(request: PublishRequest, context: Operator, key: IdempotencyKey = None) -> Response:
    """Publishes a message, in one transaction with its audit entry.

    The body is checked against the schemas of the consumers whose queues the routing key matches. `force` skips this check.
    """
    payload = read_edit(EditRequest(version=1, body=request.body, encoding=request.encoding, headers=request.headers))
    if not request.force:
        await require_valid_body(context, payload, queue=None, routing_key=request.routing_key, headers={})
    bodies = context.admin.bodies
    publisher = Publisher(
        table_name=str(context.admin.table), encryption=bodies.encryption_of_new, large_bodies=bodies.large_bodies
    )
    async with idempotency_lock(context, key, request) as lock:
        if isinstance(lock, StoredResponse):
            return to_response(lock, replayed=True)
        async with context.admin.changing("publishing a message") as connection:
            options: PublishOptions = {"destination": request.destinations, "content_type": request.content_type}
            if request.due_at is not None:
                options["eta"] = request.due_at
            if request.ordering_key is not None:
                options["ordering_key"] = request.ordering_key
            if request.headers is not None:
                options["headers"] = request.headers
            try:
                for name in request.destinations:
                    names = outbox_names(destination_table(context.admin.table, name))
                    if not await connection.fetchval(query("repair.sql", "has_table", **names)):
                        raise Problem(Code.INVALID_EDIT, no_table(name))
                message_id = await publisher.publish_async(connection, request.routing_key, payload.body, **options)
            except (EncodingError, ConfigurationError) as error:
                raise Problem(Code.INVALID_EDIT, str(error)) from None
            response = PublishedMessage(message_id=str(message_id), routing_key=request.routing_key)
            await record(
                connection,
                context,
                action="messages.publish",
                target=response.message_id,
                reason=request.reason,
                details={
                    "routing_key": request.routing_key,
                    **({} if request.destinations == [DEFAULT] else {"destinations": request.destinations}),
                },
            )
            answer = StoredResponse(201, {}, response.model_dump_json().encode())
            if lock is not None:
                await lock.store(connection, answer)
        return to_response(answer)
