"""Request models of repairs, and the validation of edited bodies against the schemas of consumers."""

import asyncio
import base64
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from jsonschema.validators import Draft202012Validator, extend
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, RootModel, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from referencing import Registry

from outbox.admin.access import RequestContext
from outbox.admin.backlog_reader import subscriptions
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.dlq.models import DeadLetterFilters
from outbox.admin.models import Instant, LongText, Model, Moment, Request, Seconds, Text
from outbox.admin.problems import Code, Problem
from outbox.core.codec import RESERVED_PREFIX, VERSION_HEADER, edited_content_type, encode_body, event_version
from outbox.core.topics import matches
from outbox.dead_letters import (
    CANARY_WAIT,
    ORIGINAL_ROUTING,
    Action,
    Canary,
    DeadLetter,
    DeadLetterFilter,
    DeadLetterStatus,
    Destination,
    Edit,
    ToQueue,
)
from outbox.dead_letters.actions import LATEST_START, Options
from outbox.errors import BrokerUnavailableError, EncodingError, MalformedMessageError
from outbox.reporting.components import ComponentStatus, components
from outbox.runtime.brokers import stored_label

MAX_IDS = 10_000
"""Maximum number of ids in one request."""
MAX_ITEMS = 10_000_000
MAX_DEPTH = 100
"""Maximum nesting depth of an edited body or header value."""


def _require_portable_json(value: Any) -> Any:
    # Python reads and writes NaN and Infinity, and deep nesting; other JSON parsers reject them.
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                raise ValueError("must not contain NaN or Infinity")
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
        if not level:
            return value
    raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")


PlainJson = Annotated[Any, AfterValidator(_require_portable_json)]


class _TextOrNumber:
    """JSON schema of an id."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "integer", "minimum": 0}]}


Id = Annotated[
    Text,
    Field(min_length=1),
    # Ids look like numbers, so clients send numbers too.
    BeforeValidator(lambda value: str(value) if isinstance(value, int) and not isinstance(value, bool) else value),
    _TextOrNumber(),
    Field(description="Id, as the list of dead letters returns it: `17` or `outbox-17`. Numbers are accepted too."),
]


def _one_of_three(schema: dict[str, Any]) -> None:
    """Documents in the JSON schema that exactly one property is required, and must not be null."""
    for field in schema["properties"].values():
        [not_null] = [each for each in field.pop("anyOf") if each != {"type": "null"}]
        field.pop("default")
        field.update(not_null)
    schema["oneOf"] = [{"required": [name]} for name in schema["properties"]]


class Selector(Request):
    """Which dead letters to change: exactly one of `ids`, `filter` and `group_id`.

    A filter without a status matches the dead letters that the action applies to.
    """

    model_config = ConfigDict(json_schema_extra=_one_of_three)

    ids: Annotated[tuple[Id, ...] | None, Field(min_length=1, max_length=MAX_IDS)] = None
    filter: DeadLetterFilters | None = None
    group_id: Annotated[Text | None, Field(min_length=1, description="Fingerprint of a group.")] = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if sum(each is not None for each in (self.ids, self.filter, self.group_id)) != 1:
            raise ValueError("give exactly one of ids, filter and group_id")
        return self

    @property
    def is_open_ended(self) -> bool:
        """Whether the selection may match more dead letters than expected."""
        return self.ids is None

    def selection(self) -> list[str] | DeadLetterFilter:
        """Converts to the library's selection."""
        if self.ids is not None:
            return list(dict.fromkeys(self.ids))
        if self.filter is None:
            return DeadLetterFilter(group_id=self.group_id)
        wanted = self.filter.as_filter()
        return wanted if "status" in self.filter.model_fields_set else replace(wanted, status=None)


class QueueDestination(Request):
    """A queue as the destination. It must exist."""

    queue: Annotated[Text, Field(min_length=1)]


class CanaryRequest(Request):
    """Sends the first `count` dead letters first; the others follow after all of these were handled.

    The operation stops at the first failed attempt, unless `stop_on_failure_ratio` tolerates it, or if results are missing
    after `wait_seconds`.
    """

    count: Annotated[int, Field(ge=1, le=MAX_ITEMS)]
    wait_seconds: Annotated[float, Field(gt=0, le=86_400, description="Longest wait for results.")] = (
        CANARY_WAIT.total_seconds()
    )

    def as_canary(self) -> Canary:
        """Converts to the library's canary."""
        return Canary(self.count, timedelta(seconds=self.wait_seconds))


class EditRequest(Request):
    """A new body, new headers, or both, for one dead letter.

    `body` is a JSON value; with the encoding `text` or `base64`, a string with the text or bytes. `headers` replace all
    existing headers; `{}` removes them. A field that is missing keeps its current value.
    """

    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="The `version` that was read, to detect concurrent edits.")]
    body: Annotated[PlainJson, Field(description="New body. If missing, the body does not change.")] = None
    encoding: Annotated[Literal["json", "text", "base64"], Field(description="Encoding of `body`.")] = "json"
    headers: Annotated[dict[str, PlainJson] | None, Field(max_length=1_000)] = None

    @property
    def has_body(self) -> bool:
        """Whether there is a new body, which may be null."""
        return "body" in self.model_fields_set

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.has_body and self.headers is None:
            raise ValueError("give at least one of body and headers")
        return self

    @model_validator(mode="after")
    def _require_string(self) -> Self:
        if self.encoding != "json" and self.has_body and not isinstance(self.body, str):
            raise ValueError(f"with the encoding {self.encoding}, the body must be a string")
        return self


class Change(Request):
    """Fields of every request for a change."""

    reason: Annotated[LongText | None, Field(max_length=2_000, description="Reason for the audit log.")] = None
    dry_run: Annotated[bool, Field(description="Return what would change, without changing it.")] = False
    confirm_token: Annotated[Text | None, Field(max_length=200, description="The token that the dry run returned.")] = None

    @property
    def action(self) -> str:
        """The action. Subclasses implement it."""
        raise AssertionError("not implemented")

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first. Subclasses implement it."""
        raise AssertionError("not implemented")

    def scope(self) -> Mapping[str, Any]:
        """What a confirmation token is bound to: it is valid for requests with an equal scope. Subclasses implement it."""
        raise AssertionError("not implemented")


class Repair(Change):
    """A change of dead letters. The fields of `selector` are also accepted at the top level."""

    selector: Selector
    max_items: Annotated[int | None, Field(ge=1, le=MAX_ITEMS, description="Maximum number, the oldest first.")] = None

    @model_validator(mode="before")
    @classmethod
    def _gather_selector(cls, given: Any) -> Any:
        # `{"ids": ["17"]}` is what most clients try first.
        top_level = {"ids", "filter", "group_id"} & given.keys() if isinstance(given, dict) else set()
        if not top_level or "selector" in given:
            return given
        others = {name: value for name, value in given.items() if name not in top_level}
        return {**others, "selector": {name: given[name] for name in top_level}}

    @property
    def action(self) -> Action:
        """The action. Subclasses implement it."""
        raise AssertionError("not implemented")

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first."""
        return self.selector.is_open_ended

    def options(self) -> dict[str, Any]:
        """Options of the library's method for the action."""
        return {}

    def scope(self) -> Mapping[str, Any]:
        """What a confirmation token is bound to: it is valid for requests with an equal scope."""
        fields = {"destination", "force", "max_items", "purge"} & set(type(self).model_fields)
        return {"action": self.action, "selector": repr(self.selector.selection())} | self.model_dump(include=fields)


class RequeueRequest(Repair):
    """Requeues dead letters. More than 100 ids, a filter, a group, a rate, a canary or a start time make it an operation."""

    destination: Annotated[
        QueueDestination | Literal["original_routing"] | None,
        Field(
            description="`original_routing`: all queues bound for the routing key now. Null: the queue where each message "
            "failed."
        ),
    ] = None
    edit: Annotated[EditRequest | None, Field(description="New body or headers. Only with a single id.")] = None
    rate_per_second: Annotated[float | None, Field(gt=0, le=1_000_000, allow_inf_nan=False)] = None
    canary: CanaryRequest | None = None
    stop_on_failure_ratio: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="The operation stops when more than this fraction of its messages have a failed attempt and were not "
            "handled since. Null: 0.1, and a canary stops at the first failed attempt. 1: never stop.",
        ),
    ] = None
    starts_at: Annotated[Instant | None, Field(description="Start time, at most 30 days ahead. Null: now.")] = None
    force: Annotated[
        bool,
        Field(
            description="Include messages older than the deduplication window, which may run twice, and accept edits that do "
            "not match a consumer's schema."
        ),
    ] = False

    @property
    def action(self) -> Action:
        """The action."""
        return Action.REQUEUE

    def library_destination(self) -> Destination | None:
        """Converts the destination to the library's type."""
        match self.destination:
            case QueueDestination(queue=queue):
                return ToQueue(queue)
            case "original_routing":
                return ORIGINAL_ROUTING
            case _:
                return None

    def options(self) -> dict[str, Any]:
        """Options of the library's method for the action, except the edit."""
        return {
            "destination": self.library_destination(),
            "rate": self.rate_per_second,
            "canary": None if self.canary is None else self.canary.as_canary(),
            "stop_ratio": self.stop_on_failure_ratio,
            "starts_at": self.starts_at,
            "force": self.force,
        }

    @model_validator(mode="after")
    def _require_single_edit(self) -> Self:
        is_operation = self.rate_per_second or self.canary or self.starts_at
        if self.edit is not None and (len(self.selector.ids or ()) != 1 or is_operation):
            raise ValueError("an edit requires exactly one id, and excludes rate_per_second, canary and starts_at")
        if self.starts_at is not None and self.starts_at > datetime.now(UTC) + LATEST_START:
            raise ValueError(f"starts_at must be at most {LATEST_START.days} days ahead")
        return self


class CanaryResponse(Model):
    """Number of messages sent first, and the maximum time to wait for their results."""

    count: int
    wait_seconds: Seconds


class OperationOptions(Model):
    """Options of an operation."""

    destination: Annotated[str | None, Field(description="Destination queue. Null: the queue where each message failed.")]
    original_routing: Annotated[bool, Field(description="Whether the routing key decides, instead of one queue.")]
    rate_per_second: float | None
    canary: CanaryResponse | None
    stop_on_failure_ratio: Annotated[
        float | None,
        Field(description="As requested. Null: 0.1, and a canary stops at the first failed attempt. 1: never stop."),
    ]
    force: bool
    starts_at: Annotated[Moment | None, Field(description="Start time. Null: the time when the operation was created.")]
    max_items: Annotated[int | None, Field(description="Maximum number of dead letters, the oldest first.")]

    @classmethod
    def of(cls, options: Options) -> Self:
        """Converts the options that an operation stores."""
        canary, destination = options.canary, options.destination
        return cls(
            destination=destination.queue if isinstance(destination, ToQueue) else None,
            original_routing=destination == ORIGINAL_ROUTING,
            rate_per_second=options.rate,
            canary=None if canary is None else CanaryResponse(count=canary.count, wait_seconds=canary.wait.total_seconds()),
            stop_on_failure_ratio=options.stop_ratio,
            force=options.force,
            starts_at=options.starts_at,
            max_items=options.max_items,
        )


class DiscardRequest(Repair):
    """Discards dead letters. With `purge`, permanently deletes discarded ones instead."""

    purge: Annotated[bool, Field(description="Delete discarded ones for good. Requires the admin role and a reason.")] = False
    force: Annotated[bool, Field(description="With `purge`, also delete dead letters that were not discarded.")] = False

    @property
    def action(self) -> Action:
        """The action."""
        return Action.PURGE if self.purge else Action.DISCARD

    def options(self) -> dict[str, Any]:
        """Options of the library's method for the action. Only a purge has any."""
        return {"force": self.force} if self.purge else {}

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first: always for a purge, which cannot be undone."""
        return self.purge or self.selector.is_open_ended

    @model_validator(mode="after")
    def _require_purge_fields(self) -> Self:
        if self.force and not self.purge:
            raise ValueError("force requires purge")
        if self.purge and not self.dry_run and not (self.reason or "").strip():
            raise ValueError("purge requires a reason")
        return self


class RestoreRequest(Repair):
    """Restores discarded dead letters to open."""

    @property
    def action(self) -> Action:
        """The action."""
        return Action.RESTORE


MAX_VIOLATIONS = 20
"""Maximum number of schema violations that are reported."""
CHECK_TIMEOUT = timedelta(seconds=1)
"""How long one body is checked against one schema; after this time, the body is accepted."""
_LONGEST_MESSAGE = 300


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


# A regular expression can take exponential time. `not`, `if` and `unevaluated…` would reject valid bodies when a pattern that
# they depend on is ignored. Pydantic converts lists to sets, so their items need not be unique.
_IGNORED = ("if", "not", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "format")
_RUNNING = frozenset({ComponentStatus.ALIVE, ComponentStatus.LATE})


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
