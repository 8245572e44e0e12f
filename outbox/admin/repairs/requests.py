"""What can be asked of dead letters: which ones are meant, what is to be done to them, and how carefully."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.dlq.filters import DeadLetterFilters
from outbox.admin.inputs import LongText, Text
from outbox.admin.models import Request
from outbox.dead_letters import CANARY_WAIT, ORIGINAL_ROUTING, Action, Canary, DeadLetterFilter, Destination, ToQueue

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
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


PlainJson = Annotated[Any, AfterValidator(_plain_json)]


def _as_text(value: Any) -> Any:
    """Numbers are what people type for ids."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _TextOrNumber:
    """The JSON schema of an id."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "integer", "minimum": 0}]}


Id = Annotated[
    Text,
    Field(min_length=1),
    BeforeValidator(_as_text),
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
    """Which dead letters are meant: exactly one of the three. A filter without a status means those that the action is for."""

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
        """The same, as the library takes it."""
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
    """The first `count` go ahead; the others follow when all of those were handled.

    It stops the operation at the first attempt that fails, unless `stop_on_failure_ratio` tolerates some, or if not all results
    are known after `wait_seconds`.
    """

    count: Annotated[int, Field(ge=1, le=MOST_ITEMS)]
    wait_seconds: Annotated[float, Field(gt=0, le=86_400, description="How long results are waited for at most.")] = (
        CANARY_WAIT.total_seconds()
    )

    def as_canary(self) -> Canary:
        """The same, as the library takes it."""
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
    """What every change takes. The fields of the selector may stand beside the others, instead of in `selector`."""

    selector: Selector
    max_items: Annotated[int | None, Field(ge=1, le=MOST_ITEMS, description="At most so many, the oldest.")] = None
    reason: Annotated[LongText | None, Field(max_length=2_000, description="Why, for the record.")] = None
    dry_run: Annotated[bool, Field(description="Say what would be done, and do nothing.")] = False
    confirm_token: Annotated[Text | None, Field(max_length=200, description="Of the dry run of the same request.")] = None

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

    def scope(self) -> Mapping[str, Any]:
        """What a dry run is about: a token is good for requests that agree in this."""
        fields = {"destination", "force", "max_items", "purge"} & set(type(self).model_fields)
        return {"action": self.action, "selector": repr(self.selector.meant())} | self.model_dump(include=fields)


class RequeueRequest(Change):
    """Sends dead letters again. More than 100 ids, a filter, a group, a rate or a canary make an operation."""

    destination: Annotated[
        QueueDestination | Literal["original-routing"] | None,
        Field(description="Another queue, or every queue that is bound for the routing key now; null: where each one died."),
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
            case "original-routing":
                return ORIGINAL_ROUTING
            case _:
                return None

    @model_validator(mode="after")
    def _one_edit(self) -> Self:
        if self.edit is not None and (len(self.selector.ids or ()) != 1 or self.rate_per_second or self.canary):
            raise ValueError("an edit is for one dead letter, named by its id, and done at once: without rate and canary")
        return self


class DiscardRequest(Change):
    """Puts dead letters aside; with `purge`, deletes those that were discarded, for good."""

    purge: Annotated[bool, Field(description="Delete for good what was discarded: takes the role admin and a reason.")] = False
    force: Annotated[bool, Field(description="With `purge`: also what was not discarded.")] = False

    @property
    def action(self) -> Action:
        """Discarding or purging."""
        return Action.PURGE if self.purge else Action.DISCARD

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


class RestoreRequest(Change):
    """Opens discarded dead letters again."""

    @property
    def action(self) -> Action:
        """Restoring."""
        return Action.RESTORE
