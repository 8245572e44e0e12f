"""The public names with their parameters and defaults; and the modules that importing loads."""

import inspect
import os
import subprocess
import sys
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import get_type_hints

import pytest

import outbox
from outbox import (
    Archiver,
    BoundPublisher,
    Consumer,
    Databases,
    HybridClock,
    Maintenance,
    MessageRelay,
    OutboxMessage,
    Publisher,
    PublishOptions,
    Reject,
    RetryAfter,
    Worker,
    consume,
    retry,
)

PUBLIC_NAMES = {
    "Archiver",
    "BoundPublisher",
    "IMMEDIATELY",
    "NEVER",
    "Consumer",
    "Databases",
    "DeadLetters",
    "Destinations",
    "HybridClock",
    "LogFields",
    "Maintenance",
    "MessageRelay",
    "OutboxError",
    "OutboxMessage",
    "PublishOptions",
    "Publisher",
    "Reject",
    "RetryAfter",
    "Route",
    "Worker",
    "consume",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "fingerprint_of",
    "get_tracking_ids",
    "tracking",
}
MESSAGE_OPTIONS = {
    "expiration": None,
    "eta": None,
    "headers": None,
    "ordering_key": None,
    "dedup_key": None,
    "on_conflict": "ignore",
    "priority": 0,
    "content_type": None,
    "destination": None,
}
_REQUIRED = inspect.Parameter.empty
OPTIONS = {"options": (_REQUIRED, "VAR_KEYWORD")}
"""`**options: Unpack[PublishOptions]`, whose names type checkers and editors show."""


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
    expected = optional({"expiration": None, "table_name": "outbox_table"}) | keyword_only(
        {
            "require_transaction": False,
            "serialize": False,
            "clock": None,
            "destinations": None,
            "enable_tracing": True,
            "encryption": None,
            "large_bodies": None,
        }
    )
    assert parameters(Publisher) == expected


def test_a_hybrid_clock_is_made_of_these_parameters() -> None:
    assert list(parameters(HybridClock)) == ["tolerance", "wall_clock"]
    assert parameters(HybridClock)["tolerance"] == (timedelta(seconds=5), "KEYWORD_ONLY")


@pytest.mark.parametrize("method", ["publish", "publish_async", "publish_sync"])
def test_publishing_takes_these_parameters(method: str) -> None:
    expected = positional("handle", "routing_key", "body") | OPTIONS
    assert parameters(getattr(Publisher, method)) == expected


def test_the_options_of_publishing_are_the_fields_of_a_message() -> None:
    assert list(get_type_hints(PublishOptions)) == list(MESSAGE_OPTIONS)
    assert {name: parameters(OutboxMessage)[name][0] for name in MESSAGE_OPTIONS} == MESSAGE_OPTIONS
    assert get_type_hints(PublishOptions).items() <= get_type_hints(OutboxMessage).items()


@pytest.mark.parametrize("method", ["bulk_publish", "bulk_publish_async", "bulk_publish_sync"])
def test_bulk_publishing_takes_these_parameters(method: str) -> None:
    assert parameters(getattr(Publisher, method)) == positional("handle", "messages")


@pytest.mark.parametrize("method", ["cancel", "cancel_async", "cancel_sync"])
def test_cancelling_takes_these_parameters(method: str) -> None:
    assert parameters(getattr(Publisher, method)) == positional("handle", "dedup_key")


def test_a_bound_publisher_takes_the_same_without_the_handle() -> None:
    assert parameters(BoundPublisher) == positional("publisher", "handle")
    assert parameters(BoundPublisher.publish) == positional("routing_key", "body") | OPTIONS
    assert parameters(BoundPublisher.bulk_publish) == positional("messages")
    assert parameters(BoundPublisher.cancel) == positional("dedup_key")


def test_an_outbox_message_has_these_fields() -> None:
    positional_ones: dict[str, object] = {"expiration": None, "eta": None}
    others: dict[str, object] = {name: default for name, default in MESSAGE_OPTIONS.items() if name not in positional_ones}
    assert parameters(OutboxMessage) == positional("routing_key", "body") | optional(positional_ones) | keyword_only(others)


def test_each_way_of_publishing_is_what_its_name_says() -> None:
    for method in (Publisher.publish_async, Publisher.bulk_publish_async, Publisher.cancel_async):
        assert inspect.iscoroutinefunction(method)
    for other in (Publisher.publish_sync, Publisher.bulk_publish_sync, Publisher.cancel_sync):
        assert not inspect.iscoroutinefunction(other)


# The positional ones are those of the library that this one succeeds; newer ones are keywords.
def test_a_relay_is_made_of_these_parameters() -> None:
    assert list(parameters(MessageRelay).items()) == list(
        (
            optional(
                {
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
                }
            )
            | keyword_only(
                {
                    "broker": None,
                    "destination": "default",
                    "lanes": 2,
                    "publish_timeout": 10.0,
                    "max_attempts": 20,
                    "on_unroutable": "hold",
                    "ordering_policy": "block",
                    "poll_interval": 1.0,
                    "listen_url": None,
                    "grace_period": 30.0,
                    "name": None,
                    "service_version": None,
                    "reporting": True,
                    "heartbeat_interval": 5.0,
                    "history": True,
                    "index_keys": (),
                    "max_batch_bytes": 67_108_864,
                    "max_body_bytes": 134_217_728,
                    "enable_tracing": True,
                    "enable_otel_metrics": False,
                }
            )
        ).items()
    )


def test_an_archiver_is_made_of_these_parameters() -> None:
    assert list(parameters(Archiver).items()) == list(
        (
            optional(
                {
                    "db_engine_url": None,
                    "db_pool": None,
                    "rmq_connection": None,
                    "rmq_connection_url": None,
                    "enable_metrics": True,
                }
            )
            | keyword_only(
                {
                    "broker": None,
                    "queues": (),
                    "table_name": "outbox_table",
                    "masking": None,
                    "discover_every": 10.0,
                    "grace_period": 30.0,
                    "name": None,
                    "service_version": None,
                    "reporting": True,
                    "heartbeat_interval": 5.0,
                    "max_batch_bytes": 67_108_864,
                    "enable_otel_metrics": False,
                }
            )
        ).items()
    )


def test_a_worker_is_made_of_these_parameters() -> None:
    assert list(parameters(Worker).items()) == list(
        (
            optional(
                {
                    "rmq_connection": None,
                    "rmq_connection_url": None,
                    "consumers": (),
                    "exchange_name": "outbox",
                    "retry_delays": ("1s", "10s", "1m", "5m"),
                    "prefetch_count": 10,
                    "enable_metrics": True,
                }
            )
            | keyword_only(
                {
                    "broker": None,
                    "db_engine_url": None,
                    "db_pool": None,
                    "table_name": "outbox_table",
                    "masking": None,
                    "grace_period": 30.0,
                    "inbox_wait": 5.0,
                    "name": None,
                    "service_version": None,
                    "reporting": True,
                    "history": True,
                    "index_keys": (),
                    "heartbeat_interval": 5.0,
                    "clock": None,
                    "redact": None,
                    "max_batch_bytes": 67_108_864,
                    "max_body_bytes": 134_217_728,
                    "enable_tracing": True,
                    "propagation": "auto",
                    "enable_otel_metrics": False,
                    "encryption": None,
                    "large_bodies": None,
                }
            )
        ).items()
    )


def test_databases_are_made_of_these_parameters() -> None:
    half_a_minute = timedelta(seconds=30)
    times: dict[str, object] = {"refresh": half_a_minute, "longest_pause": half_a_minute, "grace_period": 30.0}
    assert parameters(Databases) == positional("source", "make") | keyword_only(times)


def test_consumers_are_made_of_these_parameters() -> None:
    queue_and_delays: dict[str, object] = {"queue": "", "retry_delays": None}
    options: dict[str, object] = {
        "retry": None,
        "dead_on": (),
        "timeout": None,
        "pause_on": (),
        "pause_after": 5,
        "pause_for": "30s",
        "ordered": False,
        "max_deliveries": 10,
        "inbox": False,
        "batch": False,
        "index_keys": None,
    }
    assert parameters(consume) == positional("binding_key") | optional(queue_and_delays) | keyword_only(options)
    event = keyword_only({"event": None})
    assert parameters(Consumer) == (
        positional("binding_key", "callback") | optional(queue_and_delays) | keyword_only(options) | event
    )


def test_retry_strategies_are_made_of_these_parameters() -> None:
    ends: dict[str, object] = {"attempts": _REQUIRED, "jitter": 0.0}
    assert parameters(retry.constant) == positional("delay") | keyword_only(ends)
    assert parameters(retry.linear) == positional("first") | keyword_only({"step": _REQUIRED, "cap": "5m", **ends})
    assert parameters(retry.exponential) == positional("first") | keyword_only({"factor": 2, "cap": "5m", **ends})


def test_the_signals_of_handlers_are_made_of_these_parameters() -> None:
    assert parameters(Reject) == optional({"reason": ""})
    assert parameters(RetryAfter) == positional("delay")


@pytest.mark.parametrize("class_", [MessageRelay, Worker, Archiver, Maintenance, Databases])
def test_relay_and_worker_run_and_stop_alike(class_: type) -> None:
    assert parameters(class_.run) == keyword_only({"handle_signals": True})  # type: ignore[attr-defined]
    assert parameters(class_.stop) == {}  # type: ignore[attr-defined]


# The publisher finds out what its handles are without importing their libraries; nor does anything else, before it is used.
LIGHT = [
    "import outbox",
    "from outbox import Publisher, OutboxMessage, tracking; Publisher()",
    "from outbox import consume; consume('a')(lambda body: None)",
]
HEAVY = [
    "sqlalchemy",
    "fastapi",
    "starlette",
    "psycopg",
    "psycopg2",
    "aio_pika",
    "aiormq",
    "prometheus_client",
    "alembic",
    "asyncpg",
]


@pytest.mark.parametrize("statement", LIGHT)
def test_importing_is_light(statement: str) -> None:
    program = f"{statement}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout.strip() == "[]"


def test_an_installed_predecessor_is_an_error_that_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "outbox-0.1.0.dist-info").mkdir()
    (tmp_path / "another_outbox-1.0.dist-info").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", "import outbox"], capture_output=True, text=True, env=environment)
    [*_, last] = ended.stderr.splitlines()
    assert last == (
        f"ImportError: another distribution named 'outbox' is installed ({tmp_path}/outbox-0.1.0.dist-info), whose files are "
        "mixed with those of Outbox: run `pip uninstall outbox`, then `pip install --force-reinstall --no-deps fastapi-outbox`"
    )


def test_the_version_is_that_of_the_distribution() -> None:
    assert metadata.version("fastapi-outbox") == outbox.__version__
