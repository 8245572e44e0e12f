"""Request models of repairs, and their conversion to what the library takes."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.dlq.models import DeadLetterFilters
from outbox.admin.models import Instant, LongText, Request, Text
from outbox.dead_letters import (
    CANARY_WAIT,
    ORIGINAL_ROUTING,
    Action,
    Canary,
    DeadLetterFilter,
    Destination,
    ToQueue,
)
from outbox.dead_letters.actions import LATEST_START

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
