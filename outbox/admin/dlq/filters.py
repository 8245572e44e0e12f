"""Which dead letters a request means, as parameters of a list and as the body of a change."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.inputs import Instant, Text
from outbox.admin.models import Request
from outbox.admin.paging import Paged
from outbox.dead_letters import DeadLetterFilter, DeadLetterStatus, GroupBy, Source

T = TypeVar("T")

LARGEST_COUNT = 1_000_000
MOST_VALUES = 50
"""Values of one field of a filter, of which one has to fit."""

Status = Literal["open", "requeued", "discarded", "any"]


def _as_several(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


def _without_repetitions(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(set(values)))


class _OneOrSeveral:
    """The JSON schema of a field that takes one value or several."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        [array] = [each for each in schema.get("anyOf", [schema]) if each.get("type") == "array"]
        return {"anyOf": [array["items"], *schema.get("anyOf", [array])]}


Several = Annotated[
    tuple[T, ...],
    Field(min_length=1, max_length=MOST_VALUES),
    BeforeValidator(_as_several),
    AfterValidator(_without_repetitions),
    _OneOrSeveral(),
]
"""One value, or several, of which one has to fit."""


class DeadLetterFilters(Request):
    """What a dead letter must fit, all of it. Without `status` only those are meant that are open; `any` means every one.

    Of several values of `queue`, `routing_key`, `exception_type` or `status`, one has to fit.
    """

    source: Annotated[
        Source | None,
        Field(
            description="Who gave it up: `relay` could not send it, a `worker`'s handler failed, or the `broker` took it away."
        ),
    ] = None
    queue: Annotated[Several[Text] | None, Field(description="The queue that it died in.")] = None
    routing_key: Annotated[Several[Text] | None, Field(description="Its routing key, exactly.")] = None
    exception_type: Annotated[Several[Text] | None, Field(description="The type of the exception, with its module.")] = None
    group_id: Annotated[Text | None, Field(description="The fingerprint of its group, see `outbox_dlq_groups`.")] = None
    status: Annotated[
        Several[Status],
        Field(description="What somebody made of it; `open`: nothing yet.", json_schema_extra={"default": "open"}),
    ] = ("open",)
    tracking_id: Annotated[Text | None, Field(description="An id of its chain: its own, or of a message that led to it.")] = (
        None
    )
    message_id: Annotated[Text | None, Field(description="Its own id.")] = None
    failed_after: Annotated[Instant | None, Field(description="It died then or later.")] = None
    failed_before: Annotated[Instant | None, Field(description="It died before then.")] = None
    min_failures: Annotated[int | None, Field(ge=1, le=LARGEST_COUNT, description="So many attempts failed, or more.")] = None
    q: Annotated[
        Text | None, Field(min_length=1, description='Words of its error and masked body: words, "phrases", or, -not.')
    ] = None

    def as_filter(self) -> DeadLetterFilter:
        """The same, as the library takes it."""
        wanted = {name: _one_or_several(getattr(self, name)) for name in DeadLetterFilters.model_fields if name != "status"}
        statuses = tuple(DeadLetterStatus(each) for each in self.status if each != "any")
        return DeadLetterFilter(**wanted, status=None if "any" in self.status else _one_or_several(statuses))

    def bound_to(self) -> Mapping[str, Any]:
        """What says which filter this is: two that mean the same are equal, whatever else a request asks for."""
        return {name: value for name in DeadLetterFilters.model_fields if (value := getattr(self, name)) is not None}


def _one_or_several(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


class DeadLetterListParameters(DeadLetterFilters, Paged):
    """What `GET /dlq` takes."""

    sort: Annotated[Literal["newest", "oldest"], Field(description="By the time of death, the latest first or last.")] = (
        "newest"
    )
    facets: Annotated[bool, Field(description="Whether to count by source, status, queue, exception type and routing key.")] = (
        False
    )


class DeadLetterGroupsParameters(DeadLetterFilters):
    """What `GET /dlq/groups` takes."""

    by: Annotated[
        GroupBy, Field(description="What letters of one group have in common; a fingerprint is that of the error.")
    ] = "fingerprint"
    limit: Annotated[int, Field(ge=1, le=200, description="Most groups, the largest first.")] = 50
