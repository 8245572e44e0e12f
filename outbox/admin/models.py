"""What requests and responses share: times, pages, cursors."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import GenericAlias
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.problems import Code, Problem

T = TypeVar("T")


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[
    datetime,
    PlainSerializer(_rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time, in an answer: RFC 3339, in UTC."""
Seconds = Annotated[float, Field(ge=0, description="In seconds.")]


class Model(BaseModel):
    """A part of an answer, made of the values that the library returns. Every field is always sent, and documented so."""

    model_config = ConfigDict(from_attributes=True, frozen=True, json_schema_serialization_defaults_required=True)


@dataclass(frozen=True, slots=True)
class ShapedAs:
    """For `Annotated`: JSON that is answered as it was stored, by any release, and documented as the model `shape`."""

    shape: type[BaseModel]

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del core_schema
        # As a part of something a model is referred to by its name.
        several: Any = GenericAlias(list, self.shape)
        reference: JsonSchemaValue = handler(TypeAdapter(several).core_schema)["items"]
        return reference


class Request(BaseModel):
    """The body of a request: a field that is not known is a mistake, and refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Error(Model):
    """What went wrong, masked. Every error in every answer is this object."""

    type: str = Field(description="The class of the exception, with its module; empty: not an exception, or not known.")
    message: str = Field(description="What it says; cut in lists.")
    traceback: str | None = Field(default=None, description="Null where the answer leaves it out.")


class ExternalLinks(Model):
    """Where other systems show a message, as configured. Null: not configured, or something that it names is not known."""

    log_url: str | None
    trace_url: str | None


class Total(Model):
    """How many there are in all."""

    value: int
    relation: Literal["eq", "gte"] = Field(description="`eq`: exactly; `gte`: at least, counting was ended.")


class Page(Model, Generic[T]):
    """Part of a list, and the cursors that lead on; null where the list ends."""

    items: list[T]
    next: str | None = Field(description="Pass it as `cursor` to get the next page; null at the end.")
    previous: str | None = Field(description="Pass it as `cursor` to get the previous page; null at the beginning.")
    total: Total | None = Field(default=None, description="With `total=true` only.")


LONGEST_TEXT = 1_000
"""Most characters of a text that is compared with what is stored."""


def _storable(text: str) -> str:
    """`text`, if it is Unicode without NUL: the database holds nothing else."""
    if "\0" in text:
        raise ValueError("there may be no NUL in it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("halves of surrogate pairs are no text") from None
    return text


def _written(value: Any) -> Any:
    """Numbers would be taken for seconds since 1970, and dates for midnight somewhere."""
    if isinstance(value, int | float) or (isinstance(value, str) and not ("-" in value[:5] and ":" in value)):
        raise ValueError("a time is written as 2026-03-01T12:00:00Z")
    return value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("there is no such moment in UTC") from None


NO_NUL: dict[str, Any] = {"pattern": "^[^\\u0000]*$"}
"""What the schema says of a text that the database can hold."""
RFC3339 = r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})"
Text = Annotated[str, Field(max_length=LONGEST_TEXT, json_schema_extra=NO_NUL), AfterValidator(_storable)]
"""A text that the database can hold."""
LongText = Annotated[str, Field(max_length=20_000, json_schema_extra=NO_NUL), AfterValidator(_storable)]
"""A text that is stored, such as a note or a reason."""
Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_written),
    AfterValidator(_in_utc),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": f"^{RFC3339}$",
            "description": "RFC 3339, with its offset from UTC or `Z`.",
        }
    ),
]
"""A time in a request. Without an offset it would mean another moment in each time zone, and is refused."""


Direction = Literal["next", "previous"]

_CURSOR: dict[str, Any] = {"pattern": "^[A-Za-z0-9_-]+$"}
"""Said in the schema only: what does not fit is answered `invalid_cursor`."""
MOST_COUNTED = 10_000
"""How far `total=true` counts."""


class Paged(Request):
    """The parameters of every list, to be inherited by models for `Annotated[…, Query()]`."""

    limit: Annotated[int, Field(ge=1, le=200, description="At most so many items.")] = 50
    cursor: Annotated[
        str | None,
        Field(
            max_length=2_000,
            description="`next` or `previous` of a page before; with its filter.",
            json_schema_extra=_CURSOR,
        ),
    ] = None
    total: Annotated[bool, Field(description="Whether to count all, up to 10,000.")] = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list: behind (`next`) or before (`previous`) the item with the sort keys `place`; or from that item on."""

    direction: Direction
    place: Sequence[Any]
    inclusive: bool = False

    def encode(self, bound_to: Mapping[str, Any]) -> str:
        """As text, for lists under the filter and order `bound_to` only."""
        parts = [self.direction, _mark(bound_to), list(self.place), self.inclusive]
        raw = json.dumps(parts, separators=(",", ":"), default=str)
        return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode_cursor(text: str | None, bound_to: Mapping[str, Any], kinds: Sequence[type]) -> Cursor | None:
    """The cursor that `text` is, whose place has values of these JSON types; None for None.

    Raises `invalid_cursor` for what never was one, and `cursor_mismatch` for one of another filter or order.
    """
    if text is None:
        return None
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        direction, mark, place, inclusive = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        raise invalid_cursor() from None
    well_formed = direction in _WAYS and isinstance(mark, str) and isinstance(place, list) and isinstance(inclusive, bool)
    if not well_formed:
        raise invalid_cursor()
    # A place in a list of another filter or order would skip items, or repeat them.
    if mark != _mark(bound_to):
        raise Problem(Code.CURSOR_MISMATCH, "begin again without a cursor, or keep filter and order as they were")
    if [type(value) for value in place] != list(kinds):
        raise invalid_cursor()
    return Cursor(direction, place, inclusive)


@dataclass(frozen=True, slots=True)
class CursorPage(Generic[T]):
    """One page: its items in the order of the list, and the cursors of those next to it."""

    items: Sequence[T]
    next: str | None
    previous: str | None


def cursor_page(
    read: Sequence[T], *, limit: int, cursor: Cursor | None, bound_to: Mapping[str, Any], place: Callable[[T], Sequence[Any]]
) -> CursorPage[T]:
    """The page that `read` is: up to one more than `limit` items from behind the cursor on, in the direction that it leads.

    `place` says what a cursor keeps of an item. Whether anything is on the side that one came from is not asked: a client that
    goes back finds out.
    """
    direction = cursor.direction if cursor else "next"
    items, is_end = list(read[:limit]), len(read) <= limit
    if direction == "previous":
        items.reverse()

    def leading(way: Direction) -> str | None:
        if (way == direction and is_end) or (cursor is None and way == "previous"):
            return None
        if items:
            return Cursor(way, place(items[-1] if way == "next" else items[0])).encode(bound_to)
        # All that was here is gone, and perhaps the item that the cursor was made of is not.
        return None if cursor is None else Cursor(way, cursor.place, inclusive=not cursor.inclusive).encode(bound_to)

    return CursorPage(items, leading("next"), leading("previous"))


def counted(found: int) -> Total:
    """What is said of `found` items, of which at most one more than `MOST_COUNTED` were counted."""
    return Total(value=min(found, MOST_COUNTED), relation="eq" if found <= MOST_COUNTED else "gte")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_place(at: datetime, id_: int) -> tuple[int, int]:
    """What a cursor keeps of an item of a list that is ordered by time and id; of the kinds `(int, int)`."""
    return (at - _EPOCH) // _MICROSECOND, id_


def time_and_id(cursor: Cursor) -> tuple[datetime, int]:
    """The place that `time_place` made. Raises `invalid_cursor` for what it never made: clients make cursors, too."""
    microseconds, id_ = cursor.place
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise invalid_cursor() from None
    if not 0 <= id_ < 2**63 - 1:
        raise invalid_cursor()
    return at, id_


_WAYS: tuple[Direction, Direction] = ("next", "previous")


def _mark(bound_to: Mapping[str, Any]) -> str:
    text = json.dumps(bound_to, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def invalid_cursor() -> Problem:
    """What to raise for a cursor that no page has shown."""
    return Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
