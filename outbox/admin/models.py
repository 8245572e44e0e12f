"""What all answers have in common."""

from datetime import UTC, datetime
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

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
    """A part of an answer, made of the values that the library returns."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Request(BaseModel):
    """The body of a request: a field that is not known is a mistake, and refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ErrorSummary(Model):
    """What failed, masked; in lists, the message is cut where it is long."""

    type: str
    message: str


class Total(Model):
    """How many there are in all."""

    value: int
    relation: Literal["eq", "gte"] = Field(description="`eq`: exactly; `gte`: at least, counting was ended.")


class Page(Model, Generic[T]):
    """Part of a list, and the cursors that lead on; null where the list ends."""

    items: list[T]
    next: str | None = Field(description="Give it as `cursor` for what follows; null at the end.")
    previous: str | None = Field(description="Give it as `cursor` for what came before; null at the beginning.")
    total: Total | None = Field(default=None, description="With `total=true` only.")
