"""Encoded frames have the same meaning for other AMQP libraries."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import frame
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.transports.rabbitmq.amqp_decoding import read_properties
from outbox.transports.rabbitmq.amqp_encoding import (
    PERSISTENT,
    FrameWriter,
    Publication,
    UnsendableError,
    encode_named,
    encode_properties,
    encode_table,
    encode_usual,
)
from outbox.transports.rabbitmq.header_json import restore_types
from outbox.transports.rabbitmq.message_format import read_message

FRAME_MAX = 4_096
BEFORE_PROPERTIES = 12
"""Bytes of a content header before the flags."""
ONLY_HEADERS = b"\x20\x00"
"""The flags of properties without any but headers."""


def read_frames(data: bytes) -> list[tuple[int, Any]]:
    """Returns the frames in `data` as decoded by pamqp, with their channels."""
    frames = []
    while data:
        size, channel, value = frame.unmarshal(data)
        frames.append((channel, value))
        data = data[size:]
    return frames


def write(**fields: Any) -> list[tuple[int, Any]]:
    publication = {
        "exchange": "shop",
        "routing_key": "a.b",
        "message_id": "1",
        "properties": b"\x00\x00",
        "body": b"{}",
    } | fields
    return read_frames(FrameWriter(7, FRAME_MAX).frames(Publication(**publication)))


@pytest.mark.parametrize(
    "types", [{"/a": ["octets"]}, {"/a": {}}, {"/list/" + "9" * 5_000: "int8"}, {"/a": None}, {"/a": "octets"}]
)
def test_invalid_types_of_headers_change_none(types: dict[str, Any]) -> None:
    headers = {"a": 1, "list": [1]}
    assert restore_types(headers, types) == headers


def read_headers(headers: dict[str, Any]) -> dict[str, Any]:
    """Returns the headers as pamqp decodes them, and checks that Outbox decodes the same."""
    properties = encode_properties(Basic.Properties(headers=headers))
    [_, (_, header), *_] = write(properties=properties)
    read = header.properties.headers
    payload = bytes(BEFORE_PROPERTIES) + properties
    assert read_properties(b"?" + payload + b"?", 1, 1 + len(payload)).headers == read
    return read  # type: ignore[no-any-return]


def test_a_publication_is_mandatory_and_goes_where_it_says() -> None:
    [(channel, method), (_, header), (_, body)] = write(body=b"hello")
    assert channel == 7
    assert (method.exchange, method.routing_key, method.mandatory, method.immediate) == ("shop", "a.b", True, False)
    assert (header.body_size, body.value) == (5, b"hello")


def test_all_properties_are_read_back_as_they_were_written() -> None:
    properties = Basic.Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"a": 1},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="1000",
        message_id="żółw",
        timestamp=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        message_type="t",
        user_id="u",
        app_id="app",
    )
    [_, (_, header), *_] = write(properties=encode_properties(properties))
    assert isinstance(header, ContentHeader)
    assert header.properties == properties


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(
    texts.map(lambda text: {"x-outbox-tracking-ids": text}),
    st.none() | texts,
    st.none() | texts,
    st.none() | texts,
    texts,
    st.datetimes(timezones=st.just(UTC)),
)
def test_the_fast_encoding_of_properties_equals_the_general_one(
    headers: dict[str, Any],
    content_type: str | None,
    correlation_id: str | None,
    expiration: str | None,
    message_id: str,
    timestamp: datetime,
) -> None:
    usual: dict[str, Any] = {
        "content_type": content_type,
        "correlation_id": correlation_id,
        "expiration": expiration,
        "message_id": message_id,
        "timestamp": timestamp,
    }
    assert encode_usual(headers, **usual) == encode_named({**usual, "headers": headers, "delivery_mode": PERSISTENT})


def test_a_root_of_a_chain_is_encoded_as_its_own_correlation_id() -> None:
    usual: dict[str, Any] = {
        "content_type": None,
        "correlation_id": "7",
        "expiration": "1",
        "message_id": "7",
        "timestamp": datetime(2026, 5, 4, tzinfo=UTC),
    }
    assert encode_usual({}, **usual) == encode_named({**usual, "headers": {}, "delivery_mode": PERSISTENT})


def test_an_empty_body_has_no_body_frame() -> None:
    assert [type(value) for _, value in write(body=b"")] == [Basic.Publish, ContentHeader]


@pytest.mark.parametrize("size", [FRAME_MAX - 8, FRAME_MAX - 7, 3 * FRAME_MAX])
def test_a_body_is_split_where_frames_end(size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    pieces = [value.value for _, value in write(body=body) if isinstance(value, ContentBody)]
    assert b"".join(pieces) == body
    assert all(len(piece) <= FRAME_MAX - 8 for piece in pieces)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(min_size=1, max_size=20), _JSON, min_size=1, max_size=5))
def test_whatever_json_can_hold_is_read_back_exactly(headers: dict[str, Any]) -> None:
    assert read_headers(headers) == headers


def test_floats_keep_their_64_bits() -> None:
    assert read_headers({"ratio": 0.1, "pi": math.pi}) == {"ratio": 0.1, "pi": math.pi}


def test_all_header_types_survive_a_copy() -> None:
    headers = {
        "at": datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        "price": Decimal("12.50"),
        "raw": bytearray(b"\x00\xff"),
        "latin": b"caf\xe9",
    }
    assert read_headers(headers) == headers


@pytest.mark.parametrize("headers", [{"text": "12345678"}, {"number": 7}, {"flags": [True]}])
@pytest.mark.parametrize("missing", [1, 3])
def test_a_table_that_ends_within_a_value_is_refused(headers: dict[str, Any], missing: int) -> None:
    table = encode_table(headers)
    size = len(table) - 4 - missing
    payload = bytes(BEFORE_PROPERTIES) + ONLY_HEADERS + size.to_bytes(4) + table[4:] + bytes(20)
    with pytest.raises((ValueError, IndexError)):
        read_properties(payload, 0, BEFORE_PROPERTIES + len(ONLY_HEADERS) + 4 + size)


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [
        ({"x" * 256: 1}, "a header's name is 256 bytes long"),
        ({"size": 2**63}, "the header 'size' has a number of more than 64 bits"),
        ({"who": object()}, "the header 'who' has a value of type object"),
        ({"many": {1, 2}}, "the header 'many' has a value of type set"),
        ({"half": "\ud800"}, "half is not valid text"),
        ({"huge": Decimal("1e400")}, "the header 'huge' has a decimal"),
    ],
)
def test_a_header_that_amqp_cannot_hold_is_named(headers: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnsendableError, match=complaint):
        encode_table(headers)


def test_a_routing_key_is_measured_in_bytes() -> None:
    assert write(routing_key="ż" * 127)
    with pytest.raises(UnsendableError, match="the routing key is 256 bytes long"):
        write(routing_key="ż" * 128)


def test_headers_that_do_not_fit_into_one_frame_are_refused() -> None:
    fitting = encode_properties(Basic.Properties(headers={"h": "x" * (FRAME_MAX - 8 - 14 - 4 - 2 - 5)}))
    assert write(properties=fitting)
    with pytest.raises(UnsendableError, match="frame_max leaves 4088"):
        write(properties=fitting + b"x")


@given(st.binary(max_size=50))
def test_a_message_of_another_program_can_be_read(body: bytes) -> None:
    read = read_message(Basic.Properties(), "a.b", body)
    assert (read.routing_key, read.body, dict(read.headers)) == ("a.b", body, {})
    assert read.tracking_ids == (read.id,)


def test_an_expiration_out_of_range_is_none() -> None:
    properties = Basic.Properties(timestamp=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), expiration="60000")
    assert read_message(properties, "a.b", b"").expires_at is None
