"""Index keys: which values of a body the history finds a message by."""

import json
from datetime import UTC, datetime

import pytest

from outbox import Consumer
from outbox.core.message import Message
from outbox.engine.index_keys import LARGEST_BODY, IndexKeys
from outbox.errors import ConfigurationError
from outbox.postgres.rows import array_text


def values(body: object, *paths: str) -> list[str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return IndexKeys.of(paths).values(
        Message(id="m", routing_key="k", body=data, created_at=datetime.now(UTC), tracking_ids=("m",))
    )


def test_texts_and_whole_numbers_at_the_paths_are_kept_once() -> None:
    body = {"order_id": 4711, "customer": {"id": "c-1"}, "lines": [{"sku": "a"}, {"sku": "b"}, {"sku": "a"}], "total": 1.5}
    assert values(body, "$.order_id", "$.customer.id", "$.lines[*].sku", "$.total", "$.customer") == ["4711", "c-1", "a", "b"]


@pytest.mark.parametrize(
    "body", [b"no json", b"\xff", b"[" * 100_000, {"other": 1}, [], None, {"order_id": True}, {"order_id": ""}]
)
def test_a_body_without_such_a_value_has_none(body: object) -> None:
    assert values(body, "$.order_id") == []


def test_values_that_are_too_long_or_cannot_be_stored_are_not_kept() -> None:
    assert values({"id": ["x" * 201, "a\0b", "\ud800", "ok"]}, "$.id[*]") == ["ok"]
    assert values({"id": list(range(50))}, "$.id[*]") == [str(number) for number in range(10)]
    assert values({"id": "a", "filler": "x" * LARGEST_BODY}, "$.id") == []


@pytest.mark.parametrize("wrong", ["$.id", ("id",), ("$.",), (1,)])
def test_an_invalid_list_of_paths_is_refused_at_once(wrong: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="path"):
        Consumer("#", lambda body: None, queue="q", index_keys=wrong)


def test_an_array_is_written_as_postgresql_reads_it() -> None:
    assert array_text([]) is None
    assert array_text(['a"b', "c\\d", "e,{f}"]) == r'{"a\"b","c\\d","e,{f}"}'
