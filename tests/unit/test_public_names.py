"""What users import, by name, parameter and default; and what importing it brings along."""

import inspect
import subprocess
import sys

import pytest

import outbox
from outbox import OutboxMessage, Publisher
from outbox.publisher import BoundPublisher

PUBLIC_NAMES = {
    "BoundPublisher",
    "IMMEDIATELY",
    "NEVER",
    "Consumer",
    "MessageRelay",
    "OutboxError",
    "OutboxMessage",
    "Publisher",
    "Reject",
    "RetryAfter",
    "Worker",
    "consume",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "get_tracking_ids",
    "tracking",
}
MESSAGE_OPTIONS = {"expiration": None, "eta": None, "headers": None}
_REQUIRED = inspect.Parameter.empty


def parameters(function: object) -> dict[str, tuple[object, str]]:
    """Name → default and kind, `self` aside."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return {
        name: (parameter.default, parameter.kind.name) for name, parameter in signature.parameters.items() if name != "self"
    }


def positional(*names: str) -> dict[str, tuple[object, str]]:
    return dict.fromkeys(names, (_REQUIRED, "POSITIONAL_OR_KEYWORD"))


def keyword_only(defaults: dict[str, object]) -> dict[str, tuple[object, str]]:
    return {name: (default, "KEYWORD_ONLY") for name, default in defaults.items()}


def optional(defaults: dict[str, object]) -> dict[str, tuple[object, str]]:
    return {name: (default, "POSITIONAL_OR_KEYWORD") for name, default in defaults.items()}


def test_the_public_names_are_these() -> None:
    assert set(outbox.__all__) == PUBLIC_NAMES
    assert set(dir(outbox)) >= PUBLIC_NAMES


@pytest.mark.parametrize("name", sorted(PUBLIC_NAMES))
def test_each_public_name_can_be_imported(name: str) -> None:
    assert getattr(outbox, name) is getattr(outbox, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Relay'"):
        _ = outbox.Relay


def test_a_publisher_is_made_of_these_parameters() -> None:
    expected = optional({"expiration": None, "table_name": "outbox_table"}) | keyword_only({"require_transaction": False})
    assert parameters(Publisher) == expected


@pytest.mark.parametrize("method", ["publish", "publish_async", "publish_sync"])
def test_publishing_takes_these_parameters(method: str) -> None:
    expected = positional("handle", "routing_key", "body") | keyword_only(MESSAGE_OPTIONS)
    assert parameters(getattr(Publisher, method)) == expected


@pytest.mark.parametrize("method", ["bulk_publish", "bulk_publish_async", "bulk_publish_sync"])
def test_bulk_publishing_takes_these_parameters(method: str) -> None:
    assert parameters(getattr(Publisher, method)) == positional("handle", "messages")


def test_a_bound_publisher_takes_the_same_without_the_handle() -> None:
    assert parameters(BoundPublisher) == positional("publisher", "handle")
    assert parameters(BoundPublisher.publish) == positional("routing_key", "body") | keyword_only(MESSAGE_OPTIONS)
    assert parameters(BoundPublisher.bulk_publish) == positional("messages")


def test_an_outbox_message_has_these_fields() -> None:
    expected = positional("routing_key", "body") | optional({"expiration": None, "eta": None}) | keyword_only({"headers": None})
    assert parameters(OutboxMessage) == expected


def test_each_way_of_publishing_is_what_its_name_says() -> None:
    for method in (Publisher.publish_async, Publisher.bulk_publish_async):
        assert inspect.iscoroutinefunction(method)
    for other in (Publisher.publish_sync, Publisher.bulk_publish_sync):
        assert not inspect.iscoroutinefunction(other)


# The publisher finds out what its handles are without importing their libraries; nor does anything else, before it is used.
LIGHT = ["import outbox", "from outbox import Publisher, OutboxMessage, tracking; Publisher()"]
HEAVY = ["sqlalchemy", "fastapi", "starlette", "psycopg", "psycopg2", "aio_pika", "aiormq", "prometheus_client", "alembic"]


@pytest.mark.parametrize("statement", LIGHT)
def test_importing_is_light(statement: str) -> None:
    program = f"{statement}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout.strip() == "[]"
