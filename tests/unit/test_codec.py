"""Bodies, headers and times to bytes and back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from outbox.core import codec
from outbox.errors import EncodingError, MalformedMessageError


class Placed(BaseModel):
    id: int
    at: datetime


class Unprintable(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    thing: object


def test_a_model_becomes_its_own_json() -> None:
    body = Placed(id=1, at=datetime(2030, 1, 2, tzinfo=UTC))
    assert codec.encode_body(body, routing_key="k") == (b'{"id":1,"at":"2030-01-02T00:00:00Z"}', "application/json")


@pytest.mark.parametrize("body", [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")])
def test_bytes_stay_as_they_are(body: object) -> None:
    assert codec.encode_body(body, routing_key="k") == (b"\x00\xff", "application/octet-stream")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_anything_else_goes_through_json_and_comes_back(body: Any) -> None:
    encoded, content_type = codec.encode_body(body, routing_key="k")
    assert json.loads(encoded) == body
    assert content_type == "application/json"


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "body", [object(), {1, 2}, {"at": datetime(2030, 1, 1, tzinfo=UTC)}, {(1, 2): 3}, _endless(), Unprintable(thing=object())]
)
def test_a_body_that_cannot_be_serialised_names_its_routing_key(body: object) -> None:
    with pytest.raises(EncodingError, match=r"'order\.placed' cannot be serialised") as refusal:
        codec.encode_body(body, routing_key="order.placed")
    assert isinstance(refusal.value, ValueError)


def test_a_body_that_json_has_no_value_for_is_answered_with_what_to_publish() -> None:
    with pytest.raises(EncodingError, match=r"datetime is not JSON serializable\. Publish a pydantic model"):
        codec.encode_body({"at": datetime(2030, 1, 1, tzinfo=UTC)}, routing_key="order.placed")


def test_a_body_nested_too_deep_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(EncodingError):
        codec.encode_body(_deep(), routing_key="order.placed")


@pytest.mark.parametrize("headers", [None, {}])
def test_no_headers_are_stored_as_none(headers: dict[str, Any] | None) -> None:
    assert codec.encode_headers(headers, routing_key="k") is None


def test_headers_are_stored_as_json() -> None:
    headers = {"trace": "1", "nested": {"list": [1, None, "é😀"]}, "a backslash": "\\u0000"}
    assert json.loads(codec.encode_headers(headers, routing_key="k") or "") == headers


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [
        ({1: "one"}, "header names must be strings"),
        ({"x-outbox-attempt": 1}, "reserved"),
        ({"X-Outbox-Anything": 1}, "reserved"),
        ({"at": object()}, "cannot be serialised"),
        ({"ratio": float("nan")}, "cannot be serialised"),
        ({"ratio": float("inf")}, "cannot be serialised"),
        ({"text": "nul\0"}, "NUL"),
        ({"text": "\\\0"}, "NUL"),
        ({"nul\0": "text"}, "NUL"),
        ({"nested": [{"deep": "\0"}]}, "NUL"),
        ({"text": "half a pair \ud800"}, "cannot be serialised"),
        (["a", "b"], "mapping"),
        ("text", "mapping"),
    ],
)
def test_headers_that_no_column_can_hold_are_refused_with_the_routing_key(headers: Any, complaint: str) -> None:
    with pytest.raises(EncodingError, match=complaint) as refusal:
        codec.encode_headers(headers, routing_key="order.placed")
    assert "order.placed" in str(refusal.value)


@given(st.lists(st.text() | st.uuids().map(str)).map(tuple))
def test_tracking_ids_come_back_whatever_they_are(ids: tuple[str, ...]) -> None:
    assert codec.decode_tracking_ids(codec.encode_tracking_ids(ids), source="header") == ids


def test_tracking_ids_may_be_decoded_already() -> None:
    assert codec.decode_tracking_ids(["a", "b"], source="column") == ("a", "b")


@pytest.mark.parametrize("text", ["", "{", "{}", "1", '"a"', "[1]", '["a", null]', None, b"\xff", 7])
def test_malformed_tracking_ids_name_their_source(text: object) -> None:
    with pytest.raises(MalformedMessageError, match="x-outbox-tracking-ids"):
        codec.decode_tracking_ids(text, source="x-outbox-tracking-ids")


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]), min_value=datetime(2, 1, 1)))  # noqa: DTZ001
def test_an_instant_comes_back(instant: datetime) -> None:
    assert codec.decode_instant(codec.encode_instant(instant), source="header") == instant


def test_an_instant_without_a_zone_is_taken_for_utc() -> None:
    assert codec.decode_instant("2030-01-02T03:04:05", source="header") == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2030-13-01T00:00:00", "9999-12-31T23:59:00-14:00", None, 1_893_456_000, b"x"])
def test_a_malformed_instant_names_its_source(text: object) -> None:
    with pytest.raises(MalformedMessageError, match="x-outbox-expires-at"):
        codec.decode_instant(text, source="x-outbox-expires-at")


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        (None, "application/json", "application/json"),
        ("application/json", "application/octet-stream", "application/json"),
        ("text/csv", "application/octet-stream", "text/csv"),
        ("text/csv", "application/json", "application/json"),
        ("application/cloudevents+json; charset=utf-8", "application/json", "application/cloudevents+json; charset=utf-8"),
    ],
)
def test_an_edited_body_keeps_its_content_type_if_that_still_fits(before: str | None, kind: str, after: str) -> None:
    assert codec.edited_content_type(before, kind) == after
