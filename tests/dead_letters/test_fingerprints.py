"""Similar failures have the same fingerprint on every host and in every release; others do not."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.fingerprint import fingerprint, group_title, without_values
from outbox.core.outcome import TRACEBACK_LIMIT, Failure

names = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)
prefixes = st.sampled_from(["/srv", "/home/ann/shop", "/app/releases/2024-03-01", "C:\\Users\\ann\\shop", "/opt/x y/z"])
numbers = st.integers(1, 99_999)
ENGINE = (
    '  File "/venv/lib/python3.11/site-packages/outbox/engine/calling.py", line 88, in call\n    return await handler(*args)\n'
)
STDLIB = '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise JSONDecodeError\n'
LIBRARY = '  File "/venv/lib/python3.11/site-packages/httpx/_client.py", line 7, in send\n    raise mapped\n'
FROZEN = '  File "<frozen importlib._bootstrap>", line 241, in _call_with_frames_removed\n'
HEAD = "Traceback (most recent call last):\n"


def frame(function: str, *, prefix: str = "/srv", file: str = "orders/payment.py", line: int = 12) -> str:
    path = f"{prefix}/{file}".replace("/", "\\") if "\\" in prefix else f"{prefix}/{file}"
    return f'  File "{path}", line {line}, in {function}\n    charge()\n    ^^^^^^^^\n'


def failed(*frames: str, type_: str = "ValueError", message: str = "no") -> Failure:
    return Failure(type_, message, f"{HEAD}{''.join(frames)}{type_}: {message}\n")


def caught(call: Callable[[], object]) -> Failure:
    try:
        call()
    except BaseException as error:  # noqa: BLE001
        return Failure.of(error)
    raise AssertionError("it did not fail")


def printed(failure: Failure) -> str:
    return fingerprint(failure, queue="mail")


@given(function=names, prefix=prefixes, other=prefixes, line=numbers, other_line=numbers, id_=st.uuids(), other_id=st.uuids())
def test_hosts_lines_and_values_in_messages_make_no_difference(
    function: str, prefix: str, other: str, line: int, other_line: int, id_: object, other_id: object
) -> None:
    one = failed(ENGINE, frame(function, prefix=prefix, line=line), STDLIB, message=f"no stock of {id_} in {line}")
    two = failed(
        ENGINE, frame(function, prefix=other, line=other_line), LIBRARY, message=f"no stock of {other_id} in {other_line}"
    )
    assert printed(one) == printed(two)


def test_different_messages_of_one_place_differ() -> None:
    sold_out, closed = (failed(ENGINE, frame("place"), message=text) for text in ("sold out: 'book'", "the shop is closed"))
    assert printed(sold_out) != printed(closed)
    assert printed(sold_out) == printed(failed(ENGINE, frame("place"), message="sold out: 'pen'\nat 12:00"))


def test_the_same_failure_of_two_queues_is_two_groups() -> None:
    failure = failed(ENGINE, frame("place"))
    assert fingerprint(failure, queue="mail") != fingerprint(failure, queue="bill")


PYDANTIC = '  File "/venv/lib/python3.11/site-packages/pydantic/type_adapter.py", line 441, in validate_json\n    return x\n'


def refused(model: str, *fields: tuple[str, str]) -> Failure:
    lines = [
        f"{field}\n  Input should be good [type={kind}, input_value={number!r}, input_type=str]\n"
        f"    For further information visit https://errors.pydantic.dev/2.12/v/{kind}"
        for number, (field, kind) in enumerate(fields)
    ]
    message = "\n".join([f"{len(fields)} validation error{'s' * (len(fields) > 1)} for {model}", *lines])
    return failed(ENGINE, PYDANTIC, type_="pydantic_core._pydantic_core.ValidationError", message=message)


def test_bodies_that_pydantic_refuses_are_grouped_by_model_field_and_kind() -> None:
    kinds = [
        refused("Order", ("quantity", "int_parsing")),
        refused("Order", ("quantity", "missing")),
        refused("Order", ("sku", "missing")),
        refused("Order", ("sku", "missing"), ("quantity", "missing")),
        refused("Customer", ("sku", "missing")),
    ]
    assert len({printed(failure) for failure in kinds}) == len(kinds)


def test_positions_in_lists_make_no_difference_to_what_pydantic_refuses() -> None:
    first, second = (refused("Order", (f"items.{index}.quantity", "int_parsing")) for index in (0, 17))
    assert printed(first) == printed(second)
    assert group_title(first) == "pydantic_core._pydantic_core.ValidationError: Order, items.#.quantity (int_parsing)"


@given(function=names, other=names)
def test_different_functions_differ(function: str, other: str) -> None:
    same = printed(failed(ENGINE, frame(function))) == printed(failed(ENGINE, frame(other)))
    assert same == (function == other)


@given(id_=st.uuids(), other=st.uuids(), number=st.integers(), other_number=st.integers(), name=names, other_name=names)
def test_without_a_traceback_values_in_the_message_make_no_difference(
    id_: object, other: object, number: int, other_number: int, name: str, other_name: str
) -> None:
    one = Failure("KeyError", f"order {id_} of '{name}' has {number} rows at 0x7f{abs(number):x}")
    two = Failure("KeyError", f"order {other} of '{other_name}' has {other_number} rows at 0x7f{abs(other_number):x}")
    assert printed(one) == printed(two)
    assert printed(one) != printed(Failure("KeyError", f"customer {id_} of '{name}' has {number} rows"))


@given(type_=st.text(), message=st.text(), text=st.text())
def test_any_failure_has_sixteen_digits(type_: str, message: str, text: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", printed(Failure(type_, message, text)))


@given(cut=st.integers(0, 400))
def test_a_traceback_that_was_cut_at_its_front_is_the_same(cut: int) -> None:
    whole = failed(*[frame(f"step_{number}") for number in range(20)], STDLIB)
    tail = whole.traceback[cut:]
    assert printed(Failure(whole.type, whole.message, tail)) == printed(whole)


def test_the_title_names_the_type_and_the_deepest_frame_of_the_handlers_own_code() -> None:
    failure = failed(
        ENGINE, frame("handle"), frame("charge", file="payments/card.py"), LIBRARY, STDLIB, FROZEN, type_="shop.Declined"
    )
    assert group_title(failure) == "shop.Declined: no in payments/card.py:charge"


def test_the_type_makes_a_difference() -> None:
    assert printed(failed(frame("a"))) != printed(failed(frame("a"), type_="KeyError"))


def test_of_an_exception_chain_the_last_one_decides() -> None:
    def inner() -> None:
        raise KeyError("a")

    def outer() -> None:
        try:
            inner()
        except KeyError as error:
            raise ValueError("b") from error

    assert group_title(caught(outer)) == "ValueError: b in dead_letters/test_fingerprints.py:outer"


def test_if_the_last_exception_has_no_frame_of_the_handler_an_earlier_one_decides() -> None:
    chained = f"{HEAD}{frame('charge')}KeyError\n\nDuring handling of the above exception, another exception occurred:\n\n"
    failure = Failure("HTTPError", "", f"{chained}{HEAD}{LIBRARY}HTTPError\n")
    assert group_title(failure) == "HTTPError in orders/payment.py:charge"


def test_of_an_exception_group_the_first_member_decides() -> None:
    def member() -> None:
        raise KeyError("a")

    def failing() -> None:
        errors = []
        for _ in range(2):
            try:
                member()
            except KeyError as error:
                errors.append(error)
        raise ExceptionGroup("several", errors)

    assert (
        group_title(caught(failing)) == "ExceptionGroup: several (# sub-exceptions) in dead_letters/test_fingerprints.py:member"
    )


def test_a_recursion_is_the_same_wherever_it_ends() -> None:
    def ping(depth: int) -> None:
        pong(depth + 1)

    def pong(depth: int) -> None:
        ping(depth + 1)

    def one_deeper() -> None:
        ping(0)

    first, second = caught(lambda: ping(0)), caught(one_deeper)
    assert first.type == "RecursionError"
    assert len(first.traceback) == TRACEBACK_LIMIT
    assert printed(first) == printed(second) == printed(caught(lambda: pong(0)))


def test_repeated_lines_do_not_hide_the_frame() -> None:
    failure = failed(ENGINE, frame("loop"), "  [Previous line repeated 970 more times]\n", type_="RecursionError")
    assert group_title(failure) == "RecursionError: no in orders/payment.py:loop"


def test_handlers_that_are_installed_as_a_package_are_found_among_libraries() -> None:
    installed = '  File "/venv/lib/python3.11/site-packages/shop/orders/handlers.py", line 3, in place\n    x()\n'
    failure = failed(ENGINE, installed, LIBRARY)
    assert group_title(failure) == "ValueError: no in orders/handlers.py:place"


def test_a_project_that_is_called_outbox_is_its_own_code() -> None:
    assert group_title(failed(ENGINE, frame("send", prefix="/srv/outbox", file="mail/sending.py"))).endswith(
        "mail/sending.py:send"
    )


def test_a_failure_outside_of_the_application_names_no_place() -> None:
    assert group_title(failed(ENGINE)) == "ValueError: no"


def test_lambdas_and_notebooks_are_code_too() -> None:
    assert group_title(failed('  File "<ipython-input-3>", line 1, in <lambda>\n')).endswith(":<lambda>")


def test_a_real_handler_of_this_process_is_identified_by_its_function() -> None:
    def handler() -> None:
        int("x")

    assert (
        group_title(caught(handler))
        == "ValueError: invalid literal for int() with base #: # in dead_letters/test_fingerprints.py:handler"
    )


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("can't reach 10.0.0.1:5672, won't retry", "can't reach #, won't retry"),
        ("duplicate key (id)=(0192f3a4-1111-4222-8333-444455556666)", "duplicate key (id)=(#)"),
        ("no mail to ann.b+c@example.com, see https://example.com/x?y=1", "no mail to #, see #"),
        ("order ord_8f3k2l9x is gone", "order # is gone"),
        ("no 'a b' and \"c\" and `d`", "no # and # and #"),
        ("commit deadbeef00 is 3.5 kB", "commit # is # kB"),
        ("a  b\n c", "a b c"),
    ],
)
def test_values_are_taken_out_of_a_message(text: str, stripped: str) -> None:
    assert without_values(text) == stripped
