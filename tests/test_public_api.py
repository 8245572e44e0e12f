"""The public names, their parameters and their defaults: what users write, and what those who upgrade wrote before."""

import inspect
import subprocess
import sys

import pytest

import outbox
from outbox import Consumer, MessageRelay, OutboxMessage, Publisher, Reject, RetryAfter, Worker, consume

PUBLIC_NAMES = {
    "IMMEDIATELY",
    "NEVER",
    "BoundPublisher",
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

POSITIONAL = {
    MessageRelay: {
        "db_engine_url": None,
        "db_pool": None,
        "rmq_connection": None,
        "rmq_connection_url": None,
        "exchange_name": "outbox",
        "notification_timeout": 60.0,
        "expiration": None,
        "clean_up_after": "IMMEDIATELY",
        "table_name": "outbox_table",
        "batch_size": None,
        "enable_metrics": True,
    },
    Worker: {
        "rmq_connection": None,
        "rmq_connection_url": None,
        "consumers": (),
        "exchange_name": "outbox",
        "retry_delays": ("1s", "10s", "1m", "5m"),
        "prefetch_count": 10,
        "enable_metrics": True,
    },
    Publisher: {"expiration": None, "table_name": "outbox_table"},
}

KEYWORDS = {
    MessageRelay: {
        "broker": None,
        "lanes": 2,
        "publish_timeout": 10.0,
        "max_attempts": 20,
        "on_unroutable": "hold",
        "poll_interval": 1.0,
        "listen_url": None,
        "grace_period": 30.0,
    },
    Worker: {"broker": None, "db_engine_url": None, "db_pool": None, "table_name": "outbox_table", "grace_period": 30.0},
    Publisher: {"require_transaction": False},
}


def defaults(callable_: object, kind: inspect._ParameterKind) -> dict[str, object]:
    parameters = inspect.signature(callable_).parameters.values()  # type: ignore[arg-type]
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind is kind}


def test_the_public_names_are_these() -> None:
    assert set(outbox.__all__) == PUBLIC_NAMES
    for name in PUBLIC_NAMES:
        assert getattr(outbox, name) is not None


@pytest.mark.parametrize("class_", POSITIONAL)
def test_positional_parameters_and_defaults_are_those_of_the_predecessor(class_: type) -> None:
    found = defaults(class_, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert list(found.items()) == list(POSITIONAL[class_].items())


@pytest.mark.parametrize("class_", KEYWORDS)
def test_newer_parameters_are_keywords(class_: type) -> None:
    assert defaults(class_, inspect.Parameter.KEYWORD_ONLY) == KEYWORDS[class_]


def test_what_is_published_is_described_by_these_parameters() -> None:
    message = inspect.signature(OutboxMessage).parameters
    assert list(message) == ["routing_key", "body", "expiration", "eta", "headers"]
    for method in (Publisher.publish_async, Publisher.publish_sync):
        assert list(inspect.signature(method).parameters)[1:] == ["handle", *message]


def test_consumers_are_described_by_these_parameters() -> None:
    assert list(inspect.signature(consume).parameters) == ["binding_key", "queue", "retry_delays", "max_deliveries"]
    assert list(inspect.signature(Consumer).parameters) == [
        "binding_key",
        "callback",
        "queue",
        "retry_delays",
        "max_deliveries",
    ]


def test_the_signals_of_handlers_are_these() -> None:
    assert list(inspect.signature(Reject).parameters) == ["reason"]
    assert list(inspect.signature(RetryAfter).parameters) == ["delay"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Publishr'"):
        _ = outbox.Publishr


HEAVY = ("sqlalchemy", "fastapi", "psycopg", "psycopg2", "aio_pika", "aiormq", "prometheus_client", "alembic", "asyncpg")


def test_importing_outbox_loads_no_optional_library() -> None:
    script = f"import sys, outbox; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run_python(script) == "[]"


def test_using_the_publisher_or_declaring_consumers_loads_no_driver() -> None:
    script = (
        "import sys; from outbox import Publisher, consume, OutboxMessage; Publisher(); "
        "consume('a')(lambda body: None); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert run_python(script) == "[]"


def run_python(script: str) -> str:
    completed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    return completed.stdout.strip()
