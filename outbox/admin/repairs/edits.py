"""Validation of edits: their encoding, and the schemas and event versions that consumers at the destination read."""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jsonschema.validators import Draft202012Validator, extend
from pydantic import RootModel
from referencing import Registry

from outbox.admin.access import RequestContext
from outbox.admin.backlog_reader import subscriptions
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.requests import EditRequest, RequeueRequest
from outbox.core.codec import RESERVED_PREFIX, VERSION_HEADER, edited_content_type, encode_body, event_version
from outbox.core.topics import matches
from outbox.dead_letters import ORIGINAL_ROUTING, DeadLetter, DeadLetterStatus, Edit, ToQueue
from outbox.errors import BrokerUnavailableError, EncodingError, MalformedMessageError
from outbox.reporting.components import ComponentStatus, components
from outbox.runtime.brokers import stored_label

MAX_VIOLATIONS = 20
"""Maximum number of schema violations that are reported."""
CHECK_TIMEOUT = timedelta(seconds=1)
"""How long one body is checked against one schema; after this time, the body is accepted."""
_LONGEST_MESSAGE = 300
_RUNNING = frozenset({ComponentStatus.ALIVE, ComponentStatus.LATE})
# A regular expression can take exponential time. `not`, `if` and `unevaluated…` would reject valid bodies when a pattern that
# they depend on is ignored. Pydantic converts lists to sets, so their items need not be unique.
_IGNORED = ("if", "not", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "format")


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """A part of a body that does not match a schema. `at` is its path."""

    at: str
    message: str


async def find_violations(schema: Mapping[str, Any], body: object) -> list[SchemaViolation] | None:
    """Checks `body` against `schema`. Returns an empty list if it matches, None if the schema is invalid or takes too long.

    The check is lenient: references outside the schema, regular expressions, and keywords such as `not` and `if` are ignored.
    """
    return await asyncio.to_thread(_find_violations, schema, body)


class _OutOfTimeError(Exception):
    """The check takes too long."""


def _find_violations(schema: Mapping[str, Any], body: object) -> list[SchemaViolation] | None:
    deadline = time.thread_time() + CHECK_TIMEOUT.total_seconds()

    # A running check cannot be cancelled from outside, so each step looks at the clock: the processor time of this thread,
    # because on a busy machine the check takes longer, and must not accept what it would reject.
    def bounded(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def step(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if time.thread_time() > deadline:
                raise _OutOfTimeError
            # Which properties are additional depends on the patterns, which are ignored.
            if isinstance(schema, Mapping) and "patternProperties" in schema and value is schema.get("additionalProperties"):
                return
            yield from check(validator, value, instance, schema) or ()

        return step

    steps = {name: bounded(check) for name, check in Draft202012Validator.VALIDATORS.items()}
    # Pydantic writes `oneOf` for unions whose discriminator may be a function, which no schema shows: several may match.
    steps["oneOf"] = steps["anyOf"]
    steps |= {name: lambda *_: iter(()) for name in _IGNORED}
    validator: Any = extend(Draft202012Validator, steps)(schema, registry=Registry())
    found: list[SchemaViolation] = []
    try:
        for error in validator.iter_errors(body):
            path = ".".join(str(part) for part in error.absolute_path)[:_LONGEST_MESSAGE]
            message = error.message
            if len(message) > _LONGEST_MESSAGE:
                message = f"{message[: _LONGEST_MESSAGE - 1]}…"
            found.append(SchemaViolation(path or "body", message))
            if len(found) == MAX_VIOLATIONS:
                break
    except Exception:  # noqa: BLE001  an invalid schema may raise anything, and proves nothing about the body
        return None
    return found


async def prepare_edit(context: RequestContext, request: RequeueRequest) -> Edit | None:
    """Validates the edit of a request, and converts it to the library's type. Returns None if there is no edit.

    Raises `header_locked`; `version_conflict` if the dead letter has another version; and `invalid_edit` if the body does not
    match its encoding, or a consumer at its destination would reject or upcast it.
    """
    if request.edit is None or request.selector.ids is None:
        return None
    edit = read_edit(request.edit)
    detail = await context.admin.dead_letters.get(request.selector.ids[0])
    # The requeue itself reports that the dead letter does not exist or is not open.
    if detail is None or detail.letter.status is not DeadLetterStatus.OPEN:
        return edit
    require_version(detail.letter, edit)
    if not request.force:
        letter, queue = detail.letter, detail.letter.queue or None
        match request.library_destination():
            case ToQueue(destination_queue):
                queue = destination_queue
            case destination if destination == ORIGINAL_ROUTING:
                queue = None
        await require_valid_body(
            context, edit, queue=queue, routing_key=letter.routing_key, headers=detail.headers, failed_in=letter.queue
        )
    return edit


def require_version(letter: DeadLetter, edit: Edit) -> None:
    """Raises `version_conflict` if `letter` was edited since it was read."""
    if letter.version != edit.version:
        raise Problem(
            Code.VERSION_CONFLICT,
            f"the edit names version {edit.version}, but the dead letter has version {letter.version}: read it again",
            version=letter.version,
        )


def read_edit(request: EditRequest) -> Edit:
    """Converts an edit to the library's type. Raises `header_locked` and `invalid_edit`."""
    for name in request.headers or ():
        if name.lower().startswith(RESERVED_PREFIX):
            raise Problem(Code.HEADER_LOCKED, f"remove the header {name!r}: the prefix {RESERVED_PREFIX} is reserved")
    body: object = None
    if request.has_body:
        try:
            match request.encoding:
                case "text":
                    body = request.body.encode()
                case "base64":
                    body = base64.b64decode(request.body, validate=True)
                case _:
                    # None means no new body to the library, so the JSON value null needs a wrapper.
                    body = RootModel[Any](None) if request.body is None else request.body
        except UnicodeEncodeError:
            raise Problem(Code.INVALID_EDIT, "the text has unpaired surrogates: send the bytes as base64") from None
        except ValueError:
            raise Problem(Code.INVALID_EDIT, "the encoding is base64, but the body is not valid base64") from None
    return Edit(version=request.version, body=body, headers=request.headers)


def encode_edit(letter: DeadLetter, edit: Edit) -> tuple[bytes, str]:
    """Returns the new body as the requeue will store it, and its content type. Raises `invalid_edit`."""
    try:
        body, kind = encode_body(edit.body, routing_key=letter.routing_key)
    except EncodingError as error:
        raise Problem(Code.INVALID_EDIT, str(error)) from None
    return body, edited_content_type(letter.content_type, kind)


async def require_valid_body(
    context: RequestContext,
    edit: Edit,
    *,
    queue: str | None,
    routing_key: str,
    headers: Mapping[str, Any],
    failed_in: str = "",
) -> None:
    """Raises `invalid_edit` if all consumers of a destination queue would reject the new body, or read it as another version.

    The destination is `queue`, or all queues that the routing key matches; the message already reached the queue `failed_in`.
    `headers` are those before the edit.
    """
    after = headers if edit.headers is None else edit.headers
    if edit.body is None and headers.get(VERSION_HEADER) == after.get(VERSION_HEADER):
        return
    async with context.admin.reading("reading consumers' schemas", for_change=True) as connection:
        known = await components(connection, schema=context.admin.table.schema)
    consumers = [consumer for each in known if each.condition in _RUNNING for consumer in each.consumers]
    queues = [queue] if queue is not None else await _bound_queues(context, routing_key, failed_in, consumers)
    for name in queues:
        readers = _readers([consumer for consumer in consumers if consumer.get("queue") == name], after)
        schemas: list[Any] = [consumer.get("body") for consumer in readers]
        if edit.body is None:
            continue
        # Any running consumer of the queue may get the message, and one without a schema accepts every body.
        if not schemas or not all(isinstance(schema, dict) for schema in schemas):
            continue
        body = edit.body.root if isinstance(edit.body, RootModel) else edit.body
        if isinstance(body, bytes):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                raise _invalid_body(name, [SchemaViolation("body", "not valid JSON")]) from None
        # Most workers of a queue have the same schema, which is checked once.
        distinct = {json.dumps(schema, sort_keys=True): schema for schema in schemas}
        violations = [await find_violations(schema, body) for schema in distinct.values()]
        if all(violations):
            raise _invalid_body(name, min((each for each in violations if each), key=len))


def _readers(consumers: Sequence[Mapping[str, Any]], headers: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the consumers of a queue that read a body with these headers as it is.

    Those of a typed event read the version of their event only: they upcast an older body, which their schema does not
    describe, and refuse a newer one. Raises `invalid_edit` if no consumer is left.
    """
    readers: list[Mapping[str, Any]] = []
    versions: set[int] = set()
    for consumer in consumers:
        event = consumer.get("event")
        if not isinstance(event, Mapping) or not isinstance(event.get("version"), int):  # it may be from another release
            readers.append(consumer)
            continue
        versions.add(event["version"])
        with suppress(MalformedMessageError):
            if event_version(headers, default=event.get("default_version", 1)) == event["version"]:
                readers.append(consumer)
    if versions and not readers:
        queue, given = consumers[0]["queue"], headers.get(VERSION_HEADER)
        mismatch = f"consumers of {queue} read version {max(versions)} of the event, but the message has " + (
            "no version" if given is None else f"version {given}"
        )
        raise Problem(
            Code.INVALID_EDIT,
            f"{mismatch}: write the body as that version and set the header {VERSION_HEADER}; set force to send it anyway",
            errors=[{"field": f"headers.{VERSION_HEADER}", "message": mismatch}],
        )
    return readers


async def _bound_queues(
    context: RequestContext, routing_key: str, failed_in: str, consumers: Sequence[Mapping[str, Any]]
) -> Sequence[str]:
    """Returns all queues that the routing key leads to."""
    broker, exchange = context.admin.shared(BrokerView), stored_label(context.admin.broker) or context.admin.exchange_name
    bindings: Sequence[tuple[str, str]] | None = None
    if broker.kind is BrokerKind.POSTGRESQL:
        async with context.admin.reading("looking for subscriptions", for_change=True) as connection:
            every = await subscriptions(connection, context.admin.table)
        bindings = [(each.queue, each.key) for each in every if each.exchange == exchange]
    elif broker.rabbitmq is not None:
        with suppress(BrokerUnavailableError):
            bound = await broker.rabbitmq.bindings(exchange)
            bindings = None if bound is None else [(each.queue, each.key) for each in bound]
    if bindings is None:
        # The broker's bindings are unknown, so use those that workers report. They lack bindings that were created by hand,
        # perhaps also that of the queue where the message failed.
        reported = {str(each.get("queue")) for each in consumers if matches(str(each.get("binding_key")), routing_key)}
        return sorted(reported | {failed_in} - {""})
    return sorted({queue for queue, binding_key in bindings if matches(binding_key, routing_key)})


def _invalid_body(queue: str, found: Sequence[SchemaViolation]) -> Problem:
    return Problem(
        Code.INVALID_EDIT,
        f"a consumer of {queue} would reject the body at {found[0].at}: {found[0].message}; set force to send it anyway",
        errors=[{"field": each.at, "message": each.message} for each in found],
    )
