import json
from datetime import UTC, datetime

from outbox.engine.lifecycle import Stopping
from outbox.events import BatchSent
from outbox.postgres.reporting.activity import Activity


def test_it_is_told_when_a_relay_last_sent_something() -> None:
    activity = Activity(Stopping(), clock=lambda: 0.0, now=lambda: datetime(2026, 11, 20, 17, 26, 19, 478_000, UTC))
    assert "last_sent_at" not in json.loads(activity.as_json())
    activity.take_note(BatchSent(exchange_name="outbox", messages=[]))
    assert json.loads(activity.as_json())["last_sent_at"] == "2026-11-20T17:26:19.478Z"
