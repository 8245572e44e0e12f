"""Several observers combined into one."""

import logging

import pytest

from outbox.core.events import Advice, Event
from outbox.engine.observers import Observers

ADVICE = Advice(text="drink more water")


class Recording:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)


class Failing:
    def notify(self, event: Event) -> None:
        raise ZeroDivisionError("an observer's own fault")


def test_each_observer_is_notified_in_order() -> None:
    first, second = Recording(), Recording()
    Observers((first, second)).notify(ADVICE)
    assert first.events == second.events == [ADVICE]


def test_one_that_raises_is_logged_and_stops_neither_the_others_nor_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording()
    Observers((Failing(), recording)).notify(ADVICE)
    assert recording.events == [ADVICE]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("outbox", logging.ERROR)
    assert record.getMessage() == "Failing failed on Advice"
    assert record.exc_info is not None


def test_what_ends_the_process_passes_through() -> None:
    class Interrupted:
        def notify(self, event: Event) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Observers((Interrupted(),)).notify(ADVICE)
