import json
from datetime import UTC, datetime

from outbox.core.events import BatchSent, ConsumerStarted, IsolationStep, PoisonIsolated
from outbox.engine.lifecycle import Stopping
from outbox.reporting.components import Activity
from tests.observers.events import MESSAGE


def test_the_heartbeat_has_the_time_of_the_relays_last_send() -> None:
    activity = Activity(Stopping(), clock=lambda: 0.0, now=lambda: datetime(2026, 11, 20, 17, 26, 19, 478_000, UTC))
    assert "last_sent_at" not in json.loads(activity.as_json())
    activity.record(BatchSent(exchange_name="outbox", messages=[]))
    assert json.loads(activity.as_json())["last_sent_at"] == "2026-11-20T17:26:19.478Z"


def test_a_poison_message_is_listed_until_it_has_run() -> None:
    activity = Activity(Stopping(), clock=lambda: 0.0, now=lambda: datetime(2026, 11, 20, 17, 26, 19, tzinfo=UTC))
    activity.record(ConsumerStarted(queue="mail", exchange_name="orders", binding_key="#"))
    said = []
    for step in IsolationStep:
        activity.record(PoisonIsolated(queue="mail", exchange_name="orders", message=MESSAGE, step=step))
        activity_now = json.loads(activity.as_json())
        said.append((activity_now["state"], [poison["step"] for poison in activity_now.get("poison_messages", [])]))
    assert said == [
        ("isolating a poison message", ["waiting"]),
        ("isolating a poison message", ["running"]),
        ("running", ["postponed"]),
        ("running", []),
    ]
