"""Topic matching as RabbitMQ does it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.topics import matches


@pytest.mark.parametrize(
    ("binding_key", "routing_key", "expected"),
    [
        ("order.placed", "order.placed", True),
        ("order.placed", "order.placed.eu", False),
        ("order.placed", "order", False),
        ("order.placed", "Order.placed", False),
        ("order.*", "order.placed", True),
        ("order.*", "order", False),
        ("order.*", "order.placed.eu", False),
        ("*.placed", "order.placed", True),
        ("*", "order", True),
        ("*", "order.placed", False),
        ("#", "", True),
        ("#", "order", True),
        ("#", "order.placed.eu", True),
        ("order.#", "order", True),
        ("order.#", "order.placed", True),
        ("order.#", "order.placed.eu", True),
        ("order.#", "orders.placed", False),
        ("#.placed", "placed", True),
        ("#.placed", "order.placed", True),
        ("#.placed", "placed.order", False),
        ("order.#.eu", "order.eu", True),
        ("order.#.eu", "order.placed.eu", True),
        ("order.#.eu", "order.placed.by.ada.eu", True),
        ("order.#.eu", "order.placed.us", False),
        ("*.#", "", False),
        ("*.#", "order", True),
        ("#.*", "order.placed", True),
        ("#.#", "", True),
        ("*.*", "order", False),
        ("#.a.#.a.#", "a", False),
        ("#.a.#.a.#", "x.a.y.a.z", True),
        ("", "", True),
        ("", "order", False),
        ("*", ".", False),
        ("*.*", ".", True),
        ("order.", "order.", True),
        ("order.*", "order.", True),
        ("or*", "order", False),
        ("or*", "or*", True),
        ("or#", "or#", True),
        ("order.#x", "order.placed", False),
        ("a.b", "aXb", False),
        ("*", "#", True),
    ],
)
def test_a_binding_key_matches_as_rabbitmq_says(binding_key: str, routing_key: str, expected: bool) -> None:
    assert matches(binding_key, routing_key) is expected


words = st.lists(st.sampled_from(["a", "b", "order", ""]), min_size=1, max_size=6)
patterns = st.lists(st.sampled_from(["a", "b", "order", "*", "#"]), min_size=1, max_size=6)


@given(words)
def test_a_key_without_wildcards_matches_itself_only(key: list[str]) -> None:
    text = ".".join(key)
    assert matches(text, text)
    assert not matches(text, f"{text}.x")


@given(words)
def test_a_hash_matches_everything(key: list[str]) -> None:
    assert matches("#", ".".join(key))


@given(st.lists(st.sampled_from(["a", "b", "order"]), max_size=6), st.data())
def test_replacing_any_word_by_a_star_still_matches(key: list[str], data: st.DataObject) -> None:
    pattern = [data.draw(st.sampled_from([word, "*"])) for word in key]
    assert matches(".".join(pattern), ".".join(key))


@given(patterns, st.lists(st.sampled_from(["a", "b", "order"]), max_size=6))
def test_it_agrees_with_a_regular_expression_over_words(pattern: list[str], key: list[str]) -> None:
    """Each word, its dot included, is one letter; so `*` is one letter and `#` any number of them."""
    letters = {"a": "a", "b": "b", "order": "o"}
    expression = "".join({"*": ".", "#": ".*"}.get(word) or letters[word] for word in pattern)
    expected = re.fullmatch(expression, "".join(letters[word] for word in key)) is not None
    assert matches(".".join(pattern), ".".join(key)) is expected


def test_many_hashes_cost_no_more_than_their_number_times_the_words() -> None:
    assert not matches(".".join(["#", "a"] * 40), ".".join(["a"] * 39 + ["b"] * 200))
