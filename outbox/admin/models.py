"""Types that requests and responses share: times, pages, cursors."""

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
from outbox.core.codec import BODY_STORE, ENCRYPTION, body_headers, decode_stored, key_id_of
from outbox.core.destinations import LONGEST_NAME, NAME_PATTERN
from outbox.engine.bodies import Bodies

T = TypeVar("T")


Moment = Annotated[
    datetime,
    PlainSerializer(
        lambda moment: moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        return_type=str,
        when_used="json",
    ),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in a response: RFC 3339, in UTC."""
Seconds = Annotated[float, Field(ge=0, description="In seconds.")]


class Model(BaseModel):
    """Base of response models, built from the library's values. Every field is always sent, and documented as required."""

    model_config = ConfigDict(from_attributes=True, frozen=True, json_schema_serialization_defaults_required=True)


class BodyAccess(Model):
    """How a body is kept that is encrypted, or in the store of large bodies, and whether this service can read it."""

    key_id: str | None = Field(description="Id of the key that it is encrypted with. Null: it is not encrypted.")
    stored_size: int | None = Field(description="Size of the body in the store, in bytes. Null: it is in the message.")
    can_reveal: bool = Field(description="Whether this service has the key and the store, to reveal the body and to edit it.")
    error: str | None = Field(description="With `reveal=true`: why the body could not be read.")

    @classmethod
    def of(cls, bodies: Bodies, headers: Mapping[str, Any] | None, error: str | None = None) -> "BodyAccess | None":
        """Returns how the body of a message with these headers is kept. None: in the message, as it is."""
        own = body_headers(headers)
        if not own:
            return None
        stored = decode_stored(own.get(BODY_STORE))
        return cls(
            key_id=key_id_of(own[ENCRYPTION]) if ENCRYPTION in own else None,
            stored_size=(0 if stored is None else stored.size) if BODY_STORE in own else None,
            can_reveal=bodies.can_read(headers),
            error=error,
        )


@dataclass(frozen=True, slots=True)
class ShapedAs:
    """For `Annotated`: documents stored JSON as the model `shape`. The JSON itself is returned as its release wrote it."""

    shape: type[BaseModel]

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del core_schema
        # As an item of a list, the model is referenced by its name; alone, its whole schema would be repeated here.
        list_type: Any = GenericAlias(list, self.shape)
        reference: JsonSchemaValue = handler(TypeAdapter(list_type).core_schema)["items"]
        return reference


class Request(BaseModel):
    """Base of request models. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Error(Model):
    """An error, masked. Every error in a response has this shape."""

    type: str = Field(description="Class of the exception, with its module. Empty if there was no exception, or it is unknown.")
    message: str = Field(description="Message of the exception, shortened in lists.")
    traceback: str | None = Field(default=None, description="Null if the response omits it.")


class ExternalLinks(Model):
    """Links to the logs and the trace of a message or an attempt. Null if not configured, or if a value of it is missing."""

    log_url: str | None
    trace_url: str | None


TraceId = Annotated[
    str | None,
    Field(description="Trace of the message, from its header `traceparent`: 32 hexadecimal digits. Null if none is sampled."),
]


class Total(Model):
    """Total number of items in a list."""

    value: int
    relation: Literal["eq", "gte"] = Field(description="`eq`: exact. `gte`: at least this many; counting stops at a limit.")


class Page(Model, Generic[T]):
    """One page of a list, with the cursors of its neighbours."""

    items: list[T]
    next: str | None = Field(description="Pass it as `cursor` to get the next page. Null on the last page.")
    previous: str | None = Field(description="Pass it as `cursor` to get the previous page. Null on the first page.")
    total: Total | None = Field(default=None, description="Only with `total=true`.")


LONGEST_TEXT = 1_000
"""Maximum length, in characters, of a text that is compared with stored values."""


def _require_storable(text: str) -> str:
    # PostgreSQL stores neither NUL nor lone surrogates in a text column.
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain unpaired surrogates") from None
    return text


def _require_full_time(value: Any) -> Any:
    # Pydantic would read a number as seconds since 1970, and a date as midnight.
    if isinstance(value, int | float) or (isinstance(value, str) and not ("-" in value[:5] and ":" in value)):
        raise ValueError("must be a time such as 2026-03-01T12:00:00Z")
    return value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range in UTC") from None


NO_NUL: dict[str, Any] = {"pattern": "^[^\\u0000]*$"}
"""JSON schema of a text that the database can store."""
RFC3339 = r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})"
Text = Annotated[str, Field(max_length=LONGEST_TEXT, json_schema_extra=NO_NUL), AfterValidator(_require_storable)]
"""A text that the database can store."""
DestinationName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
LongText = Annotated[str, Field(max_length=20_000, json_schema_extra=NO_NUL), AfterValidator(_require_storable)]
"""A longer text that is stored, such as a note or a reason."""
Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_require_full_time),
    AfterValidator(_in_utc),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": f"^{RFC3339}$",
            "description": "RFC 3339, with `Z` or an offset from UTC.",
        }
    ),
]
"""A time in a request. A time without an offset is rejected, because its meaning would depend on a time zone."""


Direction = Literal["next", "previous"]

_CURSOR: dict[str, Any] = {"pattern": "^[A-Za-z0-9_-]+$"}
"""For the schema only, without validation: a cursor that does not match gets the problem `invalid_cursor`."""
MOST_COUNTED = 10_000
"""Maximum number of items that `total=true` counts."""


class Paged(Request):
    """Query parameters of every list. Models for `Annotated[…, Query()]` inherit them."""

    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of items.")] = 50
    cursor: Annotated[
        str | None,
        Field(
            max_length=2_000,
            description="`next` or `previous` of an earlier page, with the same filter.",
            json_schema_extra=_CURSOR,
        ),
    ] = None
    total: Annotated[bool, Field(description="Count all matching items, up to 10,000.")] = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a list: after (`next`) or before (`previous`) the item with these sort keys, or at it if `inclusive`."""

    direction: Direction
    keys: Sequence[Any]
    inclusive: bool = False

    def encode(self, bound_to: Mapping[str, Any]) -> str:
        """Encodes the cursor as text that is only valid with the filter and order `bound_to`."""
        parts = [self.direction, _digest(bound_to), list(self.keys), self.inclusive]
        # Unescaped, so that a cursor with a long routing key of any script is within the limit of `Paged.cursor`.
        raw = json.dumps(parts, separators=(",", ":"), ensure_ascii=False, default=str)
        return base64.urlsafe_b64encode(raw.encode(errors="surrogatepass")).decode().rstrip("=")


def decode_cursor(text: str | None, bound_to: Mapping[str, Any], kinds: Sequence[type]) -> Cursor | None:
    """Decodes a cursor whose sort keys have the JSON types `kinds`. Returns None for None.

    Raises `invalid_cursor` for a malformed cursor, and `cursor_mismatch` for one of another filter or order.
    """
    if text is None:
        return None
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        direction, digest, keys, inclusive = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        raise invalid_cursor() from None
    well_formed = (
        direction in _DIRECTIONS and isinstance(digest, str) and isinstance(keys, list) and isinstance(inclusive, bool)
    )
    if not well_formed:
        raise invalid_cursor()
    # A position in a list with another filter or order would skip or repeat items.
    if digest != _digest(bound_to):
        raise Problem(Code.CURSOR_MISMATCH, "keep the filter and order of the previous request, or start without a cursor")
    if [type(value) for value in keys] != list(kinds):
        raise invalid_cursor()
    return Cursor(direction, keys, inclusive)


@dataclass(frozen=True, slots=True)
class CursorPage(Generic[T]):
    """One page: its items in list order, and the cursors of the neighbouring pages."""

    items: Sequence[T]
    next: str | None
    previous: str | None


def cursor_page(
    read: Sequence[T], *, limit: int, cursor: Cursor | None, bound_to: Mapping[str, Any], keys_of: Callable[[T], Sequence[Any]]
) -> CursorPage[T]:
    """Makes a page of the items in `read`: up to `limit` + 1 of them, nearest to the cursor first.

    `keys_of` returns the sort keys of an item, for cursors. The page in the direction that the client came from is always
    offered, even if it is empty by now.
    """
    direction = cursor.direction if cursor else "next"
    items, is_end = list(read[:limit]), len(read) <= limit
    if direction == "previous":
        items.reverse()

    def cursor_to(target: Direction) -> str | None:
        if (target == direction and is_end) or (cursor is None and target == "previous"):
            return None
        if items:
            return Cursor(target, keys_of(items[-1] if target == "next" else items[0])).encode(bound_to)
        # All items of this page are gone. The item that the cursor was made of may still exist, so the way back includes it.
        return None if cursor is None else Cursor(target, cursor.keys, inclusive=not cursor.inclusive).encode(bound_to)

    return CursorPage(items, cursor_to("next"), cursor_to("previous"))


def to_total(found: int) -> Total:
    """Converts a count that stopped at `MOST_COUNTED` + 1."""
    return Total(value=min(found, MOST_COUNTED), relation="eq" if found <= MOST_COUNTED else "gte")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_keys(at: datetime, id_: int) -> tuple[int, int]:
    """Returns the sort keys of an item in a list that is ordered by time and id. Their kinds are `(int, int)`."""
    return (at - _EPOCH) // _MICROSECOND, id_


def decode_time_keys(cursor: Cursor) -> tuple[datetime, int]:
    """Returns the time and id that `time_keys` encoded. Raises `invalid_cursor` if they are out of range."""
    # Cursors are not signed: a client may send any numbers.
    microseconds, id_ = cursor.keys
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise invalid_cursor() from None
    if not 0 <= id_ < 2**63 - 1:
        raise invalid_cursor()
    return at, id_


_DIRECTIONS: tuple[Direction, Direction] = ("next", "previous")


def _digest(bound_to: Mapping[str, Any]) -> str:
    text = json.dumps(bound_to, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def invalid_cursor() -> Problem:
    """Returns the problem for a cursor that no page returned."""
    return Problem(Code.INVALID_CURSOR, "pass `next` or `previous` of an earlier page, or omit `cursor`")
