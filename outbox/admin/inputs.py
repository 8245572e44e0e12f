"""What requests may say: texts that a database can hold, and times that mean one moment."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, WithJsonSchema

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
"""A time that somebody asks for. Without an offset it would mean another moment to everybody, and is refused."""
