"""Values at configured paths are hidden, too, and the rest of masked JSON stays exactly as written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import ConfigurationError
from outbox.masking import MASK, Masking, preview, searchable
from tests.support.documents import json_values

SECRET = "ann@example.org"

PATHS: list[tuple[str, Any, Any]] = [
    ("$.customer.email", {"customer": {"email": SECRET, "id": 1}}, {"customer": {"email": MASK, "id": 1}}),
    (
        "$.items[*].name",
        {"items": [{"name": SECRET}, {"name": SECRET, "n": 2}]},
        {"items": [{"name": MASK}, {"name": MASK, "n": 2}]},
    ),
    ("$.items[1]", {"items": [1, SECRET]}, {"items": [1, MASK]}),
    ("$.*.note", {"a": {"note": SECRET}, "b": {"note": [SECRET]}}, {"a": {"note": MASK}, "b": {"note": MASK}}),
    ('$["odd key"].x', {"odd key": {"x": SECRET}}, {"odd key": {"x": MASK}}),
    ("$['a.b']", {"a.b": SECRET, "a": {"b": 1}}, {"a.b": MASK, "a": {"b": 1}}),
    ("$", [SECRET], MASK),
    ("$.whole", {"whole": {"deep": [SECRET]}}, {"whole": MASK}),
    ("$.nothing.there", {"nothing": SECRET}, {"nothing": SECRET}),
    ("$.absent", {"absent": None}, {"absent": None}),
]


@pytest.mark.parametrize(("path", "value", "masked"), PATHS)
def test_values_at_paths_are_masked_in_values_text_and_previews(path: str, value: Any, masked: Any) -> None:
    masking = Masking(paths=(path,))
    assert masking.masked(value) == masked
    text = masking.masked_json(json.dumps(value))
    assert text is not None
    assert json.loads(text) == masked
    assert json.loads(preview(json.dumps(value).encode(), None, masking)) == masked


def test_a_path_continues_inside_strings_that_contain_json() -> None:
    masking = Masking(paths=("$.data.customer.email", "$.phone"))
    inner = json.dumps({"customer": {"email": SECRET}, "phone": SECRET, "id": 7})
    for text in (masking.masked_json(json.dumps({"data": inner})), json.dumps(masking.masked({"data": inner}))):
        assert text is not None
        assert SECRET not in text
        assert json.loads(json.loads(text)["data"])["id"] == 7


def test_values_at_paths_are_neither_searchable_nor_in_errors() -> None:
    masking = Masking(paths=("$.customer.email",))
    body = json.dumps({"customer": {"email": SECRET, "name": "ann"}})
    text = searchable(body.encode(), None, masking, error=body, words=("mail",))
    assert "ann" in text
    assert SECRET not in text
    assert SECRET not in masking.masked_text(body)


@pytest.mark.parametrize(
    "path",
    ["", "customer", "$customer", "$.", "$..a", "$.a[", "$.a[x]", "$[-1]", "$.a b", '$["a]', "$.a.", 7, "$[99999999999]"],
)
def test_an_invalid_path_is_refused_at_construction(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="a JSON path"):
        Masking(paths=(path,))


EXACT = (
    '{ "n": 9007199254740993, "f": 1.10, "e":1e999 ,"z": -0.0, "dup": 1, "dup": 2,\n'
    ' "u": "\\u00e9é\\ud800", "list": [ ] , "o":{} }'
)


def test_everything_that_is_not_masked_stays_exactly_as_it_was_written() -> None:
    assert Masking().masked_json(EXACT) == EXACT
    assert (
        Masking().masked_json(f'[1.0,{{"token" : "x","token":7}}, {EXACT}]')
        == f'[1.0,{{"token" : "***","token":"***"}}, {EXACT}]'
    )
    assert Masking().masked_json('{"password": null}') == '{"password": null}'
    assert Masking().masked_json('{"a": "amqp://ann:hunter2@mq/"}') == '{"a": "amqp://ann:***@mq/"}'


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1,]", "{1: 2}", '{"a" 1}', '{"a": 1,}', "[1] 2", "nul", "-", "01", "'a'", '{"a": "\n"}']
)
def test_other_text_is_not_taken_for_json(text: str) -> None:
    assert Masking().masked_json(text) is None


@given(value=json_values, key=st.sampled_from(["password", "x-api-key"]), indent=st.none() | st.integers(0, 3))
def test_text_is_masked_as_values_are(value: Any, key: str, indent: int | None) -> None:
    masking = Masking(paths=("$.place",))
    document = {"place": [value], key: value, "text": json.dumps({key: "hunter2", "a": [value]}), "rest": value}
    text = masking.masked_json(json.dumps(document, indent=indent))
    assert text is not None
    assert "hunter2" not in text
    assert masking.masked(json.loads(text)) == masking.masked(document)


@given(value=json_values, ascii_only=st.booleans())
def test_json_without_secrets_is_shown_as_it_is(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if "://" not in text and "assword" not in text:
        assert Masking(keys=("qqqqqqqqqq",)).masked_json(text) == text


@pytest.mark.parametrize("levels", [100, 3_000, 100_000])
def test_what_is_nested_too_deep_shows_nothing(levels: int) -> None:
    deep = "[" * levels + '{"password": "hunter2"}' + "]" * levels
    for text in (deep, json.dumps({"text": deep})):
        shown = Masking().masked_json(text)
        assert shown is not None
        assert "hunter2" not in shown
    assert "hunter2" not in json.dumps(Masking().masked({"text": deep}))


LATER = Masking().also("pets", paths=["$.customer.email"])


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"customer": {"email": "ann@example.org", "id…', '{"customer": {"email": "***"}}…'),
        ('{"pets": {"cat": "tom", "dog": "re…', '{"pets": "***"}…'),
        ('{"a": [1, {"pets": ["tom…', '{"a": [1, {"pets": "***"}]}…'),
        ('{"a": "{\\"pets\\": \\"tom…', "{}…"),
        ('{"a": 1, "b": "\\u00…', '{"a": 1}…'),
        ('{"a": 1, "b": "what goes o…', '{"a": 1, "b": "what goes o…'),
        ('{"pets": 1, "b": 2}', '{"pets": "***", "b": 2}'),
        ("<binary, 3 kB>", "<binary, 3 kB>"),
    ],
)
def test_a_cut_preview_hides_keys_that_were_configured_later(written: str, shown: str) -> None:
    assert LATER.masked_preview(written) == shown


@given(around=json_values, length=st.integers(1, 150))
def test_no_preview_shows_keys_that_were_configured_later_wherever_it_was_cut(around: Any, length: int) -> None:
    body = json.dumps({"pets": {"cat": [SECRET, around]}, "customer": {"email": SECRET}, "text": json.dumps({"pets": SECRET})})
    written = preview(body.encode(), None, Masking(), limit=length)
    assert SECRET[:4] not in LATER.masked_preview(written)
