"""What all answers have in common."""

from dataclasses import dataclass
from datetime import UTC, datetime
from types import GenericAlias
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, PlainSerializer, TypeAdapter, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

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
    """For `Annotated`: JSON that is answered as it was stored, whoever wrote it, and documented as the model `shape`."""

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
