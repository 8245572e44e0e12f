"""Edits: read as they were sent, compared with the version that is there, and checked as their consumer would check them."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import RootModel

from outbox.admin.access import Asked
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.requests import EditRequest, RequeueRequest
from outbox.admin.repairs.schemas import Misfit, misfits
from outbox.admin.store.backlog import subscriptions
from outbox.core.codec import RESERVED_PREFIX
from outbox.core.topics import matches
from outbox.dead_letters import ORIGINAL_ROUTING, DeadLetter, DeadLetterStatus, Edit, ToQueue
from outbox.errors import BrokerUnavailableError
from outbox.reporting.components import Condition, components

_AWAKE = frozenset({Condition.ALIVE, Condition.LATE})


async def edit_of(asked: Asked, request: RequeueRequest) -> Edit | None:
    """The edit that is asked for, as the library takes it; None for none.

    Raises `header-locked`, `version-conflict` if another version is there, and `invalid-edit` if the body is not what its
    encoding says, or would be refused where it goes.
    """
    if request.edit is None or request.selector.ids is None:
        return None
    edit = _read(request.edit)
    detail = await asked.admin.dead_letters.get(request.selector.ids[0])
    if detail is None or detail.letter.status is not DeadLetterStatus.OPEN:
        return edit  # the requeue says so
    require_version(detail.letter, edit)
    if request.edit.has_body and not request.force:
        await _require_fitting(asked, request, detail.letter, edit)
    return edit


def require_version(letter: DeadLetter, edit: Edit) -> None:
    """Raises `version-conflict` if `letter` is not what was read."""
    if letter.version != edit.version:
        raise Problem(
            Code.VERSION_CONFLICT,
            f"version {edit.version} was read, and version {letter.version} is there now: look at it again",
            version=letter.version,
        )


def _read(request: EditRequest) -> Edit:
    for name in request.headers or ():
        if name.lower().startswith(RESERVED_PREFIX):
            raise Problem(Code.HEADER_LOCKED, f"leave out the header {name!r}: {RESERVED_PREFIX}… belongs to the system")
    return Edit(version=request.version, body=_body(request) if request.has_body else None, headers=request.headers)


def _body(request: EditRequest) -> object:
    match request.encoding:
        case "text":
            return _encoded(request.body)
        case "base64":
            return _decoded(request.body)
        case _:
            return RootModel[Any](None) if request.body is None else request.body


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Problem(Code.INVALID_EDIT, "halves of surrogate pairs are no text: send the bytes as base64") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Problem(Code.INVALID_EDIT, "the body is not base64, as its encoding says") from None


async def _require_fitting(asked: Asked, request: RequeueRequest, letter: DeadLetter, edit: Edit) -> None:
    """Any of the consumers that live may be the next: the body has to fit one of them."""
    async with asked.admin.reading("looking for a consumer's schema", for_change=True) as connection:
        known = await components(connection, schema=asked.admin.table.schema)
    consumers = [consumer for each in known if each.condition in _AWAKE for consumer in each.consumers]
    for queue in await _queues(asked, request, letter, consumers):
        schemas = _schemas(consumers, queue)
        if not schemas:
            continue
        try:
            body = _as_json(edit.body)
        except (ValueError, RecursionError):
            raise _refusal(queue, [Misfit("body", "this is not JSON")]) from None
        judged = [await misfits(schema, body) for schema in schemas]
        if all(judged):
            raise _refusal(queue, min((each for each in judged if each), key=len))


async def _queues(
    asked: Asked, request: RequeueRequest, letter: DeadLetter, consumers: Sequence[Mapping[str, Any]]
) -> Sequence[str]:
    """Where it goes. Every queue that is bound for the routing key gets it, so it has to fit a consumer of each."""
    match request.where_to():
        case ToQueue(queue):
            return [queue]
        case destination if destination != ORIGINAL_ROUTING and letter.queue:
            return [letter.queue]
    bindings = await _bindings(asked)
    if bindings is None:
        # Only workers tell of bindings here. It reached the queue that it died in, which may be bound by hand.
        bound = {str(each.get("queue")) for each in consumers if matches(str(each.get("binding_key")), letter.routing_key)}
        return sorted(bound | {letter.queue} - {""})
    return sorted({queue for queue, binding_key in bindings if matches(binding_key, letter.routing_key)})


async def _bindings(asked: Asked) -> Sequence[tuple[str, str]] | None:
    """The queues that are bound to the exchange, with their binding keys; None where the broker does not tell."""
    broker, exchange = asked.admin.shared(BrokerView), asked.admin.exchange_name
    if broker.kind is BrokerKind.POSTGRESQL:
        async with asked.admin.reading("looking for subscriptions", for_change=True) as connection:
            every = await subscriptions(connection, asked.admin.table)
        return [(each.queue, each.key) for each in every if each.exchange == exchange]
    try:
        bound = None if broker.rabbitmq is None else await broker.rabbitmq.bindings(exchange)
    except BrokerUnavailableError:
        return None
    return None if bound is None else [(each.queue, each.key) for each in bound]


def _schemas(consumers: Sequence[Mapping[str, Any]], queue: str) -> Sequence[Any]:
    """What the workers that live have told of the bodies that `queue`'s consumers take."""
    told = [consumer.get("body") for consumer in consumers if consumer.get("queue") == queue]
    if any(not isinstance(schema, dict) for schema in told):
        return ()  # a consumer takes anything
    return list({json.dumps(schema, sort_keys=True): schema for schema in told}.values())


def _as_json(body: object) -> object:
    match body:
        case bytes():
            return json.loads(body)
        case RootModel():
            return body.root
        case _:
            return body


def _refusal(queue: str, found: Sequence[Misfit]) -> Problem:
    return Problem(
        Code.INVALID_EDIT,
        f"the consumer of {queue} would refuse it at {found[0].at}: {found[0].message}; force requeues it all the same",
        errors=[{"at": each.at, "message": each.message} for each in found],
    )
