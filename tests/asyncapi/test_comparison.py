"""Breaking changes: what a service sends must fit the old schema, what it receives was written for the old one."""

from copy import deepcopy
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from outbox.asyncapi import Change, asyncapi_document, compare_documents
from outbox.contracts import Event


def document(*, sends: Any = None, receives: Any = None, version: int = 1, oldest: int = 1) -> dict[str, Any]:
    """The document of a service that sends or receives `order.placed` with these models or JSON schemas."""
    events = [] if sends is None else [Event("order.placed", sends, version=version)]
    consumers: list[dict[str, Any]] = []
    if receives is not None:
        schema = receives if isinstance(receives, dict) else receives.model_json_schema()
        versions = {"version": version, "oldest": oldest}
        consumers.append({"queue": "mail", "binding_key": "order.placed", "body": schema, "event": versions})
    return asyncapi_document(consumers, events, title="shop", version="1")


def model(**fields: Any) -> type[BaseModel]:
    """A model `Order`; a field is a type, or a type with its default."""
    given: dict[str, Any] = {name: field if isinstance(field, tuple) else (field, ...) for name, field in fields.items()}
    return create_model("Order", **given)


def shown(changes: list[Change]) -> list[str]:
    return [f"{change.where} {change.text}" for change in changes]


def sent(old: Any, new: Any) -> list[str]:
    changes = compare_documents(document(sends=old), document(sends=new))
    assert {change.breaks for change in changes} <= {"consumers"}
    return shown(changes)


def received(old: Any, new: Any) -> list[str]:
    changes = compare_documents(document(receives=old), document(receives=new))
    assert {change.breaks for change in changes} <= {"publishers"}
    return shown(changes)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


Sku = Annotated[str, StringConstraints(pattern="^x")]


class Line(BaseModel):
    sku: str


class LineWithCount(BaseModel):
    sku: str
    count: int


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: int


class Tree(BaseModel):
    children: list["Tree"]


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class CardWithName(BaseModel):
    kind: Literal["card"]
    number: str
    name: str


CardWithName.__name__ = "Card"


class Cash(BaseModel):
    kind: Literal["cash"]


UNION = Annotated[Card | Cash, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("old", "new", "breaks_consumers", "breaks_publishers"),
    [
        pytest.param(model(id=int), model(id=int, note=str), [], ["note is new and required"], id="a new required field"),
        pytest.param(model(id=int), model(id=int, note=(str | None, None)), [], [], id="a new optional field"),
        pytest.param(model(id=int, note=str), model(id=int), ["note was removed"], [], id="a removed field"),
        pytest.param(model(id=int, note=(str, "")), model(id=int), ["note was removed"], [], id="a removed optional field"),
        pytest.param(
            model(id=int), model(id=(int, 0)), ["id is no longer always present"], [], id="a field that becomes optional"
        ),
        pytest.param(model(id=(int, 0)), model(id=int), [], ["id is now required"], id="a field that becomes required"),
        pytest.param(
            model(id=int),
            model(id=str),
            ["id was integer and is string"],
            ["id was integer and is string"],
            id="another type",
        ),
        pytest.param(model(id=int), model(id=float), ["id was integer and is number"], [], id="a wider number"),
        pytest.param(model(id=float), model(id=int), [], ["id was number and is integer"], id="a narrower number"),
        pytest.param(
            model(id=int), model(id=int | None), ["id was integer and is integer or null"], [], id="null becomes possible"
        ),
        pytest.param(
            model(id=int | None), model(id=int), [], ["id was integer or null and is integer"], id="null becomes impossible"
        ),
        pytest.param(model(id=int), model(id=Any), ["id was integer and is any"], [], id="any type"),
        pytest.param(
            model(colour=Literal["red", "blue"]),
            model(colour=Literal["red"]),
            [],
            ['colour may no longer be "blue"'],
            id="a narrower enumeration",
        ),
        pytest.param(
            model(colour=Literal["red", "blue"]),
            model(colour=Literal["red", "blue", "green"]),
            ['colour may now be "green"'],
            [],
            id="a wider enumeration",
        ),
        pytest.param(
            model(colour=Colour),
            model(colour=str),
            ['colour is no longer limited to "red", "blue"'],
            [],
            id="an enumeration that becomes text",
        ),
        pytest.param(
            model(colour=str), model(colour=Colour), [], ['colour must now be one of "red", "blue"'], id="text of some values"
        ),
        pytest.param(
            model(name=Annotated[str, Field(max_length=10)]),
            model(name=Annotated[str, Field(max_length=5)]),
            [],
            ["name maxLength was 10 and is 5"],
            id="shorter text",
        ),
        pytest.param(
            model(count=Annotated[int, Field(ge=1)]),
            model(count=int),
            ["count minimum was 1 and is not set"],
            [],
            id="a limit that was removed",
        ),
        pytest.param(
            model(lines=list[Line]),
            model(lines=list[LineWithCount]),
            [],
            ["lines[].count is new and required"],
            id="inside of a list",
        ),
        pytest.param(
            model(prices=dict[str, int]),
            model(prices=dict[str, str]),
            ["prices{} was integer and is string"],
            ["prices{} was integer and is string"],
            id="inside of a mapping",
        ),
        pytest.param(
            model(first=Line, last=Line),
            model(first=LineWithCount, last=LineWithCount),
            [],
            ["first.count is new and required", "last.count is new and required"],
            id="one model in two fields",
        ),
        pytest.param(
            model(payment=UNION),
            model(payment=Annotated[CardWithName | Cash, Field(discriminator="kind")]),
            [],
            ["payment.name is new and required"],
            id="a case of a union",
        ),
        pytest.param(
            model(payment=UNION),
            model(payment=Cash),
            [],
            ["payment was object (Card) or object (Cash) and is object (Cash)"],
            id="a union with fewer cases",
        ),
        pytest.param(
            Closed,
            create_model("Closed", __base__=Closed, note=(str, "")),
            ["note is new, which consumers refuse"],
            [],
            id="a new field, for consumers that refuse unknown ones",
        ),
        pytest.param(
            create_model("Open", id=(int, ...)), Closed, [], ["fields without a schema are now refused"], id="a closed model"
        ),
        pytest.param(Tree, create_model("Tree", children=(list[Tree], ...)), [], [], id="a recursive model"),
        pytest.param(
            model(counts=dict[Sku, int]),
            model(counts=dict[Sku, str]),
            ["counts{} was integer and is string"],
            ["counts{} was integer and is string"],
            id="values of a mapping whose keys have a pattern",
        ),
        pytest.param(
            model(counts=dict[str, int]),
            model(counts=dict[Sku, int]),
            [],
            ['counts{} pattern was not set and is "^x"'],
            id="keys of a mapping that get a pattern",
        ),
        pytest.param(
            model(counts=dict[Literal["a", "b"], int]),
            model(counts=dict[Literal["a"], int]),
            [],
            ['counts{} may no longer be "b"'],
            id="keys of a mapping that are narrowed",
        ),
    ],
)
def test_a_change_of_a_body_breaks_those_who_can_no_longer_read_or_write_it(
    old: Any, new: Any, breaks_consumers: list[str], breaks_publishers: list[str]
) -> None:
    operation = "receive.mail"
    assert sent(old, new) == [_at("send.order.placed", text) for text in breaks_consumers]
    assert received(old, new) == [_at(operation, text) for text in breaks_publishers]
    assert sent(old, deepcopy(old)) == received(new, new) == []


def _at(operation: str, text: str) -> str:
    return f"{operation} {text}" if text.startswith("fields without") else f"{operation}: {text}"


ORDER = model(id=int)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            document(sends=ORDER),
            document(),
            [("channel_removed", "consumers", "send.order.placed", "the channel order.placed was removed")],
            id="a channel that nothing uses now",
        ),
        pytest.param(
            document(sends=ORDER, receives=ORDER),
            document(sends=ORDER),
            [("operation_removed", "publishers", "receive.mail", "messages of order.placed are no longer received")],
            id="a queue that was removed",
        ),
        pytest.param(
            document(sends=ORDER, receives=ORDER),
            document(receives=ORDER),
            [("operation_removed", "consumers", "send.order.placed", "messages of order.placed are no longer sent")],
            id="an event that is no longer published",
        ),
        pytest.param(document(sends=ORDER), document(sends=ORDER, receives=ORDER), [], id="a queue that was added"),
        pytest.param(
            document(sends=ORDER, version=2),
            document(sends=model(id=str), version=1),
            [("version_lowered", "consumers", "send.order.placed", "the version 2 became 1")],
            id="a lower version",
        ),
        pytest.param(
            document(sends=ORDER),
            document(sends=model(id=str), version=2),
            [("version_raised", None, "send.order.placed", "the version 1 became 2: deploy its consumers before")],
            id="another body with a higher version",
        ),
        pytest.param(
            document(receives=ORDER),
            document(receives=model(id=str), version=2),
            [("version_raised", None, "receive.mail", "the version 1 became 2: deploy it before its publishers")],
            id="another body with an upcaster",
        ),
        pytest.param(
            document(receives=ORDER),
            document(receives=model(id=str), version=2, oldest=2),
            [
                ("version_raised", None, "receive.mail", "the version 1 became 2: deploy it before its publishers"),
                ("version_dropped", "publishers", "receive.mail", "versions below 2 are refused, 1 was accepted"),
            ],
            id="another body without an upcaster",
        ),
    ],
)
def test_a_change_of_an_operation_or_a_version_is_named(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str | None, str, str]]
) -> None:
    assert compare_documents(old, new) == [Change(*each) for each in expected]  # type: ignore[arg-type]


def test_a_queue_that_is_bound_to_another_key_no_longer_receives_the_first() -> None:
    old = document(receives=ORDER, sends=ORDER)
    new = asyncapi_document(
        [{"queue": "mail", "binding_key": "order.paid", "body": ORDER.model_json_schema()}],
        [Event("order.placed", ORDER)],
        title="shop",
        version="1",
    )
    assert shown(compare_documents(old, new)) == ["receive.mail order.paid is received in place of order.placed"]


@pytest.mark.parametrize("other", [{}, {"asyncapi": "2.6.0"}, {"openapi": "3.1.0"}, [], None])
def test_other_documents_are_refused(other: Any) -> None:
    with pytest.raises(ValueError, match="the new document is not AsyncAPI 3"):
        compare_documents(document(), other)


# --- property: what is called compatible can be read ----------------------------------------------------------------------

_SCALARS = st.one_of(
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(0, 3), "maximum": st.integers(0, 3)}),
    st.fixed_dictionaries({"type": st.just("number")}, optional={"exclusiveMinimum": st.integers(0, 2)}),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(0, 2)}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(["", "a", "ab", 1, None]), min_size=1, unique=True)}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": "a"}, {"type": ["integer", "null"]}, {}, True]),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, required, extra: {
            "type": "object",
            "properties": properties,
            "required": sorted(required & properties.keys()),
            "additionalProperties": extra,
        },
        st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
        st.sets(st.sampled_from("xy")),
        st.booleans(),
    )


SCHEMAS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        _objects(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner),
        st.builds(lambda *branches: {"anyOf": list(branches)}, inner, inner),
    ),
    max_leaves=4,
)
_PLAIN = st.sampled_from([0, 1, 3, 1.5, "", "a", "abc", None, True])
VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xy"), inner, max_size=2)),
    max_leaves=4,
)


def closed(schema: Any) -> Any:
    """The schema without fields that it does not name: a publisher writes only those of its model."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(part) for name, part in schema.items()}
    return {**inner, "additionalProperties": False} if "properties" in schema else inner


@given(old=SCHEMAS, new=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=12))
def test_a_body_of_the_old_schema_can_be_read_with_a_new_one_that_is_called_compatible(
    old: Any, new: Any, values: list[Any]
) -> None:
    changes = compare_documents(_with_payload("receive", old), _with_payload("receive", new))
    if not changes:
        written, read = Draft202012Validator(closed(old)), Draft202012Validator(new)
        assert [value for value in values if written.is_valid(value) and not read.is_valid(value)] == []
    assert compare_documents(_with_payload("receive", old), _with_payload("receive", old)) == []


def _with_payload(action: str, payload: Any) -> dict[str, Any]:
    """A document with a payload that needs no model."""
    channels = {"a": {"address": "a", "messages": {"m": {"payload": payload}}}}
    operations = {"o": {"action": action, "channel": {"$ref": "#/channels/a"}}}
    return {"asyncapi": "3.0.0", "channels": channels, "operations": operations}
