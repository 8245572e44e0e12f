"""Failures as text that can be stored."""

import pytest

from outbox.core.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT, Failure, qualified_name


class OddError(Exception):
    pass


def _caught(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_a_failure_names_the_type_the_message_and_the_place() -> None:
    failure = Failure.of(_caught(OddError("boom")))
    assert failure.type == "tests.unit.test_outcome.OddError"
    assert failure.message == "boom"
    assert "_caught" in failure.traceback
    assert str(failure) == "tests.unit.test_outcome.OddError: boom"
    assert str(Failure.of(OddError())) == "tests.unit.test_outcome.OddError"


def test_a_failure_has_a_limited_length_and_keeps_the_end_of_its_traceback() -> None:
    failure = Failure.of(_caught(OddError("x" * 100_000 + "END")))
    assert failure.message == "x" * MESSAGE_LIMIT
    assert len(failure.traceback) == TRACEBACK_LIMIT
    assert failure.traceback.endswith("END\n")


@pytest.mark.parametrize(("type_", "name"), [(ValueError, "ValueError"), (OddError, "tests.unit.test_outcome.OddError")])
def test_builtins_are_named_without_their_module(type_: type, name: str) -> None:
    assert qualified_name(type_) == name


def test_an_error_without_a_readable_message_is_a_failure_too() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise AttributeError("reason")

    failure = Failure.of(Unspeakable())
    assert failure.type.endswith("Unspeakable")
    assert failure.message == "its message cannot be read: AttributeError"
    assert "Unspeakable" in failure.traceback
