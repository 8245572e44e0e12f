"""Published messages become rows: checked and encoded, or refused."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from outbox import OutboxMessage, tracking
from outbox.engine.rows import Extras, as_expiration, rows_of
from outbox.errors import ConfigurationError, EncodingError


def row_of(*args: Any, **keywords: Any) -> Any:
    (row,) = rows_of([OutboxMessage("order.placed", {}, *args, **keywords)])
    return row


@pytest.mark.parametrize(
    ("value", "expiration"),
    [
        (None, None),
        (1, timedelta(seconds=1)),
        (0.001, timedelta(milliseconds=1)),
        (timedelta(microseconds=1), timedelta(microseconds=1)),
        (timedelta(days=36_525), timedelta(days=36_525)),
    ],
)
def test_an_expiration_is_in_seconds_or_a_timedelta(value: Any, expiration: timedelta | None) -> None:
    assert as_expiration(value) == expiration
    assert row_of(value).expiration == expiration


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        0.0,
        1e-9,
        timedelta(0),
        timedelta(seconds=-1),
        timedelta(days=36_526),
        timedelta.max,
        float("nan"),
        float("inf"),
        10**400,
        1e300,
        True,
        "60",
        "1m",
        Decimal(1),
    ],
)
def test_an_expiration_that_makes_no_sense_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="expiration"):
        as_expiration(value)
    with pytest.raises(ConfigurationError, match="expiration"):
        row_of(value)


def test_the_default_expiration_is_for_messages_that_name_none() -> None:
    messages = [OutboxMessage("a", {}), OutboxMessage("b", {}, 5)]
    rows = rows_of(messages, default_expiration=timedelta(minutes=1))
    assert [row.expiration for row in rows] == [timedelta(minutes=1), timedelta(seconds=5)]


@pytest.mark.parametrize(
    ("eta", "due"),
    [
        (None, None),
        (0, timedelta(0)),
        (1500, timedelta(seconds=1.5)),
        (0.5, timedelta(microseconds=500)),
        (-10, timedelta(milliseconds=-10)),
        (timedelta(hours=2), timedelta(hours=2)),
        (datetime(2030, 1, 1, 12, tzinfo=UTC), datetime(2030, 1, 1, 12, tzinfo=UTC)),
        (datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=3))), datetime(2030, 1, 1, 9, tzinfo=UTC)),
    ],
)
def test_an_eta_is_an_instant_a_delay_or_milliseconds(eta: Any, due: datetime | timedelta | None) -> None:
    assert row_of(eta=eta).due == due


@pytest.fixture(params=["America/New_York", "Asia/Kathmandu", "UTC"])
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as environment:
        environment.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_a_naive_eta_means_local_time_in_summer_and_in_winter(local_zone: str) -> None:
    hours = {"America/New_York": (12, 11), "Asia/Kathmandu": (1.25, 1.25), "UTC": (7, 7)}[local_zone]
    for month, hour in zip((1, 7), hours, strict=True):
        due = row_of(eta=datetime(2030, month, 15, 7)).due  # noqa: DTZ001
        assert due == datetime(2030, month, 15, tzinfo=UTC) + timedelta(hours=hour)


@pytest.mark.parametrize(
    "eta",
    ["2030-01-01", "1m", True, float("nan"), float("inf"), 10**400, timedelta.max, date(2030, 1, 1), b"", Decimal(1)],
)
def test_an_eta_that_makes_no_sense_is_refused(eta: Any) -> None:
    with pytest.raises(ConfigurationError, match="eta"):
        row_of(eta=eta)


@pytest.mark.parametrize(("eta", "lines"), [(60, 1), (999.5, 1), (1_000, 0), (0, 0), (-5, 0), (timedelta(seconds=60), 0)])
def test_a_number_that_may_have_meant_seconds_is_warned_of_and_means_milliseconds(
    eta: Any, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    row_of(eta=eta)
    assert len(caplog.messages) == lines
    assert all("milliseconds" in line and f"timedelta(seconds={eta})" in line for line in caplog.messages)


@pytest.mark.parametrize("given", ["text/csv", "application/cloudevents+json; charset=utf-8", "a/" + "b" * 253])
def test_a_content_type_replaces_that_of_the_body(given: str) -> None:
    assert rows_of([OutboxMessage("a", b"x", content_type=given)])[0].content_type == given


@pytest.mark.parametrize("given", ["", "json", "text/", "a/b\n", "żółw/a", "a/" + "b" * 254, b"text/csv", 7])
def test_a_content_type_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="content_type must be a media type"):
        rows_of([OutboxMessage("a", b"x", content_type=given)])


def test_an_eta_beyond_the_end_of_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="out of range"):
        row_of(eta=datetime.max.replace(tzinfo=timezone(timedelta(hours=-3))))


@pytest.mark.parametrize("routing_key", [None, 1, b"key", ["key"], "nul\0", "\ud800"])
def test_a_routing_key_that_no_table_can_hold_is_refused(routing_key: Any) -> None:
    with pytest.raises(ConfigurationError, match="routing key"):
        rows_of([OutboxMessage(routing_key, {})])


@pytest.mark.parametrize("routing_key", ["k" * 100_000, "ключ.😀", "a b\nc", "'\"\\%:$"])
def test_any_other_routing_key_is_taken(routing_key: str) -> None:
    (row,) = rows_of([OutboxMessage(routing_key, {})])
    assert row.routing_key == routing_key


def test_each_row_s_id_is_the_last_of_its_chain() -> None:
    with tracking(["root", 'quote " and \\ backslash']):
        first, second = rows_of([OutboxMessage("a", {}), OutboxMessage("b", {})])
    assert first.tracking_ids == f'["root", "quote \\" and \\\\ backslash", "{first.id}"]'
    assert second.tracking_ids.endswith(f'"{second.id}"]')
    assert first.id != second.id
    assert row_of().tracking_ids.startswith('["')


def test_a_chain_at_its_limit_stays_at_its_limit() -> None:
    with tracking([str(number) for number in range(400)]):
        row = row_of()
    assert row.tracking_ids.count(",") == 255
    assert row.tracking_ids.startswith('["0", ')
    assert f'"399", "{row.id}"]' in row.tracking_ids


def test_a_chain_that_no_column_can_hold_is_refused_before_writing() -> None:
    with tracking(["nul\0"]), pytest.raises(EncodingError, match="tracking ids"):
        row_of()


# --- keys and priority -------------------------------------------------------------------------------------------------


def test_a_message_without_options_has_no_extras() -> None:
    assert row_of().extras is None
    assert row_of(priority=0, on_conflict="ignore").extras is None


@pytest.mark.parametrize(
    ("options", "extras"),
    [
        ({"ordering_key": "k"}, Extras(ordering_key="k")),
        ({"ordering_key": "k" * 100_000}, Extras(ordering_key="k" * 100_000)),
        ({"dedup_key": "ü" * 500}, Extras(dedup_key="ü" * 500)),
        ({"dedup_key": "d", "on_conflict": "replace"}, Extras(dedup_key="d", replaces=True)),
        ({"priority": 9}, Extras(priority=9)),
        ({"priority": 1, "dedup_key": "d"}, Extras(priority=1, dedup_key="d")),
        ({"ordering_key": "k", "dedup_key": "d"}, Extras(ordering_key="k", dedup_key="d")),
    ],
)
def test_options_become_extras(options: Any, extras: Extras) -> None:
    assert row_of(**options).extras == extras


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"priority": 10}, "priority must be a whole number from 0 to 9"),
        ({"priority": -1}, "priority must be a whole number from 0 to 9"),
        ({"priority": 1.0}, "priority must be a whole number from 0 to 9"),
        ({"priority": "1"}, "priority must be a whole number from 0 to 9"),
        ({"priority": True}, "priority must be a whole number from 0 to 9"),
        ({"priority": None}, "priority must be a whole number from 0 to 9"),
        ({"priority": 1, "ordering_key": "k"}, "priority and ordering_key exclude each other"),
        ({"ordering_key": ""}, "ordering_key must be non-empty text"),
        ({"ordering_key": 7}, "ordering_key must be non-empty text"),
        ({"ordering_key": b"k"}, "ordering_key must be non-empty text"),
        ({"ordering_key": "a\0b"}, "ordering_key .* contains the character NUL"),
        ({"ordering_key": "\ud800"}, "ordering_key .* is not valid text"),
        ({"dedup_key": ""}, "dedup_key must be non-empty text"),
        ({"dedup_key": 7}, "dedup_key must be non-empty text"),
        ({"dedup_key": "a\0b"}, "dedup_key .* contains the character NUL"),
        ({"dedup_key": "d" * 1_001}, "dedup_key must have at most 1,000 bytes"),
        ({"dedup_key": "ü" * 501}, "dedup_key must have at most 1,000 bytes"),
        ({"dedup_key": "d", "on_conflict": "update"}, "on_conflict must be 'ignore' or 'replace'"),
        ({"dedup_key": "d", "on_conflict": None}, "on_conflict must be 'ignore' or 'replace'"),
        ({"on_conflict": "replace"}, "needs a dedup_key"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        row_of(**options)


def test_each_row_is_stamped_in_order() -> None:
    stamps = iter(range(100, 200))
    rows = rows_of([OutboxMessage("a", {}), OutboxMessage("b", {}, priority=2)], stamp=lambda: next(stamps))
    assert [row.extras for row in rows] == [Extras(hlc=100), Extras(priority=2, hlc=101)]
