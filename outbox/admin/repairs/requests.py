"""Requests for repairs: which dead letters, which change, with which edits and limits."""

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
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.dlq.models import DeadLetterFilters
from outbox.admin.models import Instant, LongText, Model, Moment, Request, Seconds, Text
from outbox.admin.problems import Code, Problem
from outbox.admin.store import subscriptions
from outbox.core.codec import RESERVED_PREFIX
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
from outbox.errors import BrokerUnavailableError
from outbox.reporting.components import ComponentStatus, components

MOST_IDS = 10_000
"""Most ids that one request names."""
MOST_ITEMS = 10_000_000
DEEPEST = 100
"""How deep an edited body, or a header's value, may be nested."""


def _plain_json(value: Any) -> Any:
    """`value`, if every reader of JSON could read it: neither nested too deep nor with numbers that JSON does not know."""
    level = [value]
    for _ in range(DEEPEST + 1):
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                raise ValueError("JSON knows neither NaN nor Infinity")
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


PlainJson = Annotated[Any, AfterValidator(_plain_json)]


class _TextOrNumber:
    """The JSON schema of an id."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "integer", "minimum": 0}]}


Id = Annotated[
    Text,
    Field(min_length=1),
    # Numbers are what people type for ids.
    BeforeValidator(lambda value: str(value) if isinstance(value, int) and not isinstance(value, bool) else value),
    _TextOrNumber(),
    Field(description="As the list of dead letters names it: `17`, or `outbox-17`. A number is taken for its text."),
]


def _one_of_three(schema: dict[str, Any]) -> None:
    """Says in the schema what the validator below asks for: one of them is given, and it is not null."""
    for field in schema["properties"].values():
        [given] = [each for each in field.pop("anyOf") if each != {"type": "null"}]
        field.pop("default")
        field.update(given)
    schema["oneOf"] = [{"required": [name]} for name in schema["properties"]]


class Selector(Request):
    """Which dead letters to change: exactly one of the three. Without a status a filter matches what the action applies to."""

    model_config = ConfigDict(json_schema_extra=_one_of_three)

    ids: Annotated[tuple[Id, ...] | None, Field(min_length=1, max_length=MOST_IDS)] = None
    filter: DeadLetterFilters | None = None
    group_id: Annotated[Text | None, Field(min_length=1, description="The fingerprint of a group.")] = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if sum(each is not None for each in (self.ids, self.filter, self.group_id)) != 1:
            raise ValueError("give exactly one of ids, filter and group_id")
        return self

    @property
    def is_open_ended(self) -> bool:
        """Whether it may mean more than one thinks."""
        return self.ids is None

    def meant(self) -> list[str] | DeadLetterFilter:
        """The selection as the library takes it."""
        if self.ids is not None:
            return list(dict.fromkeys(self.ids))
        if self.filter is None:
            return DeadLetterFilter(group_id=self.group_id)
        wanted = self.filter.as_filter()
        return wanted if "status" in self.filter.model_fields_set else replace(wanted, status=None)


class QueueDestination(Request):
    """To this queue, which must exist."""

    queue: Annotated[Text, Field(min_length=1)]


class CanaryRequest(Request):
    """The first `count` are sent first; the others follow when all of those were handled.

    It stops the operation at the first attempt that fails, unless `stop_on_failure_ratio` tolerates some, or if not all results
    are known after `wait_seconds`.
    """

    count: Annotated[int, Field(ge=1, le=MOST_ITEMS)]
    wait_seconds: Annotated[float, Field(gt=0, le=86_400, description="Longest wait for results.")] = (
        CANARY_WAIT.total_seconds()
    )

    def as_canary(self) -> Canary:
        """The canary as the library takes it."""
        return Canary(self.count, timedelta(seconds=self.wait_seconds))


class EditRequest(Request):
    """Another body, other headers, or both, for one dead letter that was read at `version`.

    `body` is a JSON value, or with another `encoding` the text or the base64 of the bytes. `headers` replace all that there
    are; without them they stay, and `{}` removes them.
    """

    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="The `version` that the dead letter was read at.")]
    body: Annotated[PlainJson, Field(description="The new body; left out, it stays as it is.")] = None
    encoding: Annotated[Literal["json", "text", "base64"], Field(description="What `body` is.")] = "json"
    headers: Annotated[dict[str, PlainJson] | None, Field(max_length=1_000)] = None

    @property
    def has_body(self) -> bool:
        """Whether there is a new body; null is one."""
        return "body" in self.model_fields_set

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not self.has_body and self.headers is None:
            raise ValueError("an edit changes the body, the headers, or both: give at least one of them")
        if self.encoding != "json" and not isinstance(self.body, str):
            raise ValueError(f"with the encoding {self.encoding}, the body is a string")
        return self


class Change(Request):
    """What every change takes."""

    reason: Annotated[LongText | None, Field(max_length=2_000, description="Why, for the record.")] = None
    dry_run: Annotated[bool, Field(description="Say what would be done, and do nothing.")] = False
    confirm_token: Annotated[Text | None, Field(max_length=200, description="Of the dry run of the same request.")] = None

    @property
    def action(self) -> str:
        """What is to be done."""
        raise AssertionError("each change says it")

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first."""
        raise AssertionError("each change says it")

    def scope(self) -> Mapping[str, Any]:
        """What a dry run is about: a token is good for requests that agree in this."""
        raise AssertionError("each change says it")


class Repair(Change):
    """A change of dead letters. The fields of the selector may stand next to the others, instead of in `selector`."""

    selector: Selector
    max_items: Annotated[int | None, Field(ge=1, le=MOST_ITEMS, description="At most so many, the oldest.")] = None

    @model_validator(mode="before")
    @classmethod
    def _gather_selector(cls, given: Any) -> Any:
        """As people guess it: `{"ids": ["17"]}`."""
        beside = {"ids", "filter", "group_id"} & given.keys() if isinstance(given, dict) else set()
        if not beside or "selector" in given:
            return given
        others = {name: value for name, value in given.items() if name not in beside}
        return {**others, "selector": {name: given[name] for name in beside}}

    @property
    def action(self) -> Action:
        """What is to be done."""
        raise AssertionError("each change says it")

    @property
    def needs_token(self) -> bool:
        """Whether a dry run must come first."""
        return self.selector.is_open_ended

    def options(self) -> dict[str, Any]:
        """How it is to be done, as the library's method of the action takes it."""
        return {}

    def scope(self) -> Mapping[str, Any]:
        """What a dry run is about: a token is good for requests that agree in this."""
        fields = {"destination", "force", "max_items", "purge"} & set(type(self).model_fields)
        return {"action": self.action, "selector": repr(self.selector.meant())} | self.model_dump(include=fields)


class RequeueRequest(Repair):
    """Sends dead letters again. More than 100 ids, a filter, a group, a rate, a canary or a time make an operation."""

    destination: Annotated[
        QueueDestination | Literal["original_routing"] | None,
        Field(description="Another queue, or every queue that is bound now; null: the queue where each one failed."),
    ] = None
    edit: Annotated[EditRequest | None, Field(description="For one id only.")] = None
    rate_per_second: Annotated[float | None, Field(gt=0, le=1_000_000, allow_inf_nan=False)] = None
    canary: CanaryRequest | None = None
    stop_on_failure_ratio: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="Past this share of messages that failed an attempt, and were not handled since, it stops itself. "
            "Null: 0.1, and a canary stops at the first failed attempt. 1: it never does.",
        ),
    ] = None
    starts_at: Annotated[
        Instant | None, Field(description="Begin then, at most 30 days ahead, as an operation; null: now.")
    ] = None
    force: Annotated[
        bool, Field(description="Also those that are older than inboxes remember, and edits that a consumer's schema refuses.")
    ] = False

    @property
    def action(self) -> Action:
        """Requeueing."""
        return Action.REQUEUE

    def where_to(self) -> Destination | None:
        """The destination, as the library takes it."""
        match self.destination:
            case QueueDestination(queue=queue):
                return ToQueue(queue)
            case "original_routing":
                return ORIGINAL_ROUTING
            case _:
                return None

    def options(self) -> dict[str, Any]:
        """How it is to be done, but for the edit."""
        return {
            "destination": self.where_to(),
            "rate": self.rate_per_second,
            "canary": None if self.canary is None else self.canary.as_canary(),
            "stop_ratio": self.stop_on_failure_ratio,
            "starts_at": self.starts_at,
            "force": self.force,
        }

    @model_validator(mode="after")
    def _one_edit(self) -> Self:
        goes_on = self.rate_per_second or self.canary or self.starts_at
        if self.edit is not None and (len(self.selector.ids or ()) != 1 or goes_on):
            raise ValueError(
                "an edit is for one dead letter, named by its id, and done at once: without rate, canary and starts_at"
            )
        if self.starts_at is not None and self.starts_at > datetime.now(UTC) + LATEST_START:
            raise ValueError(f"starts_at is at most {LATEST_START.days} days ahead")
        return self


class CanaryResponse(Model):
    """How many are sent first, and the longest wait for their results."""

    count: int
    wait_seconds: Seconds


class OperationOptions(Model):
    """How an operation is done."""

    destination: Annotated[str | None, Field(description="A queue, or null: the queue where each one failed.")]
    original_routing: Annotated[bool, Field(description="By the routing key, instead of to one queue.")]
    rate_per_second: float | None
    canary: CanaryResponse | None
    stop_on_failure_ratio: Annotated[
        float | None,
        Field(description="As it was asked for; null: 0.1, and a canary stops at the first failed attempt. 1: never."),
    ]
    force: bool
    starts_at: Annotated[Moment | None, Field(description="When it begins, or began; null: when it was created.")]
    max_items: Annotated[int | None, Field(description="At most so many, the oldest.")]

    @classmethod
    def of(cls, options: Options) -> Self:
        """What was asked for, as the operation keeps it."""
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
    """Puts dead letters aside; with `purge`, deletes those that were discarded, for good."""

    purge: Annotated[bool, Field(description="Delete for good what was discarded: takes the role admin and a reason.")] = False
    force: Annotated[bool, Field(description="With `purge`: also what was not discarded.")] = False

    @property
    def action(self) -> Action:
        """Discarding or purging."""
        return Action.PURGE if self.purge else Action.DISCARD

    def options(self) -> dict[str, Any]:
        """How it is to be done: only a purge can be forced."""
        return {"force": self.force} if self.purge else {}

    @property
    def needs_token(self) -> bool:
        """What is purged is gone."""
        return self.purge or self.selector.is_open_ended

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.force and not self.purge:
            raise ValueError("force goes with purge")
        if self.purge and not self.dry_run and not (self.reason or "").strip():
            raise ValueError("purging takes a reason")
        return self


class RestoreRequest(Repair):
    """Opens discarded dead letters again."""

    @property
    def action(self) -> Action:
        """Restoring."""
        return Action.RESTORE


MOST_MISFITS = 20
"""Most places that are reported."""
TIME = timedelta(seconds=1)
"""How long one body is checked; what takes longer is not judged."""
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Misfit:
    """What does not fit, and where: `at` is the path of it."""

    at: str
    message: str


async def misfits(schema: Mapping[str, Any], body: object) -> list[Misfit] | None:
    """Where `body` does not fit; empty: nowhere; None: the schema makes no sense, or takes too long.

    References are followed within the schema only. Regular expressions are not tried, because one can take for ever, nor what
    must not fit or depends on something, which may be one. Items need not be unique, because pydantic makes sets of lists, and
    of `oneOf` several may fit, because its discriminators can be functions that no schema shows.
    """
    return await asyncio.to_thread(_judged, schema, body)


class _OutOfTimeError(Exception):
    """The schema takes too long."""


def _judged(schema: Mapping[str, Any], body: object) -> list[Misfit] | None:
    deadline = time.monotonic() + TIME.total_seconds()

    def bounded(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        """`check`, and a look at the clock before it: no library of schemas can be stopped from outside."""

        def step(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if time.monotonic() > deadline:
                raise _OutOfTimeError
            if isinstance(schema, Mapping) and "patternProperties" in schema and value is schema.get("additionalProperties"):
                return  # which properties are additional, only its expressions could say
            yield from check(validator, value, instance, schema) or ()

        return step

    steps = {name: bounded(check) for name, check in Draft202012Validator.VALIDATORS.items()}
    steps["oneOf"] = steps["anyOf"]
    steps |= {name: lambda *_: iter(()) for name in _LEFT_OUT}
    validator: Any = extend(Draft202012Validator, steps)(schema, registry=Registry())
    found: list[Misfit] = []
    try:
        for error in validator.iter_errors(body):
            path = ".".join(str(part) for part in error.absolute_path)[:_LONGEST_MESSAGE]
            message = error.message
            if len(message) > _LONGEST_MESSAGE:
                message = f"{message[: _LONGEST_MESSAGE - 1]}…"
            found.append(Misfit(path or "body", message))
            if len(found) == MOST_MISFITS:
                break
    except Exception:  # noqa: BLE001  whatever a schema does to its reader, it says nothing of the body
        return None
    return found


_LEFT_OUT = ("if", "not", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "format")


_AWAKE = frozenset({ComponentStatus.ALIVE, ComponentStatus.LATE})


async def edit_of(context: RequestContext, request: RequeueRequest) -> Edit | None:
    """The edit that is asked for, as the library takes it; None for none.

    Raises `header_locked`, `version_conflict` if another version is there, and `invalid_edit` if the body is not what its
    encoding says, or would be refused where it goes.
    """
    if request.edit is None or request.selector.ids is None:
        return None
    edit = read_edit(request.edit)
    detail = await context.admin.dead_letters.get(request.selector.ids[0])
    if detail is None or detail.letter.status is not DeadLetterStatus.OPEN:
        return edit  # the requeue says so
    require_version(detail.letter, edit)
    if request.edit.has_body and not request.force:
        letter, queue = detail.letter, detail.letter.queue or None
        match request.where_to():
            case ToQueue(named):
                queue = named
            case destination if destination == ORIGINAL_ROUTING:
                queue = None
        await require_fitting(context, edit, queue=queue, routing_key=letter.routing_key, failed_in=letter.queue)
    return edit


def require_version(letter: DeadLetter, edit: Edit) -> None:
    """Raises `version_conflict` if `letter` is not what was read."""
    if letter.version != edit.version:
        raise Problem(
            Code.VERSION_CONFLICT,
            f"version {edit.version} was read, and version {letter.version} is there now: look at it again",
            version=letter.version,
        )


def read_edit(request: EditRequest) -> Edit:
    """The edit as the library takes it. Raises `header_locked` and `invalid_edit`."""
    for name in request.headers or ():
        if name.lower().startswith(RESERVED_PREFIX):
            raise Problem(Code.HEADER_LOCKED, f"leave out the header {name!r}: {RESERVED_PREFIX}… belongs to the system")
    body: object = None
    if request.has_body:
        try:
            match request.encoding:
                case "text":
                    body = request.body.encode()
                case "base64":
                    body = base64.b64decode(request.body, validate=True)
                case _:
                    body = RootModel[Any](None) if request.body is None else request.body
        except UnicodeEncodeError:
            raise Problem(Code.INVALID_EDIT, "halves of surrogate pairs are no text: send the bytes as base64") from None
        except ValueError:
            raise Problem(Code.INVALID_EDIT, "the body is not base64, as its encoding says") from None
    return Edit(version=request.version, body=body, headers=request.headers)


async def require_fitting(
    context: RequestContext, edit: Edit, *, queue: str | None, routing_key: str, failed_in: str = ""
) -> None:
    """Raises `invalid_edit` if the body would be refused where it goes: to `queue`, or to all that the routing key leads to.

    Any of the consumers that live may be the next: the body has to fit one of them. It reached the queue `failed_in` before.
    """
    async with context.admin.reading("looking for a consumer's schema", for_change=True) as connection:
        known = await components(connection, schema=context.admin.table.schema)
    consumers = [consumer for each in known if each.condition in _AWAKE for consumer in each.consumers]
    queues = [queue] if queue is not None else await _bound_queues(context, routing_key, failed_in, consumers)
    for name in queues:
        schemas: list[Any] = [consumer.get("body") for consumer in consumers if consumer.get("queue") == name]
        if not schemas or not all(isinstance(schema, dict) for schema in schemas):
            continue  # a consumer takes anything
        body = edit.body.root if isinstance(edit.body, RootModel) else edit.body
        if isinstance(body, bytes):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                raise _refusal(name, [Misfit("body", "this is not JSON")]) from None
        # Most workers of a queue have the same schema.
        different = {json.dumps(schema, sort_keys=True): schema for schema in schemas}
        judged = [await misfits(schema, body) for schema in different.values()]
        if all(judged):
            raise _refusal(name, min((each for each in judged if each), key=len))


async def _bound_queues(
    context: RequestContext, routing_key: str, failed_in: str, consumers: Sequence[Mapping[str, Any]]
) -> Sequence[str]:
    """Every queue that is bound for the routing key gets it, so it has to fit a consumer of each."""
    broker, exchange = context.admin.shared(BrokerView), context.admin.exchange_name
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
        # Only workers report bindings here. It reached the queue that it died in, which may be bound by hand.
        named = {str(each.get("queue")) for each in consumers if matches(str(each.get("binding_key")), routing_key)}
        return sorted(named | {failed_in} - {""})
    return sorted({queue for queue, binding_key in bindings if matches(binding_key, routing_key)})


def _refusal(queue: str, found: Sequence[Misfit]) -> Problem:
    return Problem(
        Code.INVALID_EDIT,
        f"the consumer of {queue} would refuse it at {found[0].at}: {found[0].message}; force requeues it all the same",
        errors=[{"field": each.at, "message": each.message} for each in found],
    )
