"""Values of keys that are named like secrets are hidden at any depth, in previews, errors and searches."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import ConfigurationError
from outbox.masking import MASK, READ_LIMIT, Masking, preview, searchable
from tests.support.documents import json_values

MASKING = Masking()
SECRET = "hunter2-4111"


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "userPassword",
        "PASSWORD_HASH",
        "X-Api-Key",
        "apikey",
        "api_keys",
        "accessToken",
        "Authorization",
        "cardNumber",
        "card-number",
        "CVV",
        "cvv2",
        "iban",
        "card_pin",
        "client_secret",
        "Set-Cookie",
        "ssn",
        "bankAccountNumber",
    ],
)
def test_keys_that_are_named_like_secrets_are_masked_however_they_are_written(key: str) -> None:
    assert MASKING.masked({key: SECRET}) == {key: MASK}


@pytest.mark.parametrize("key", ["shipping", "panel", "company", "opinion", "spin", "id", "total", "key", "card", "", "7"])
def test_similar_keys_are_not_masked(key: str) -> None:
    assert MASKING.masked({key: 7}) == {key: 7}


@given(around=json_values, key=st.sampled_from(["password", "x-api-key", "iban"]))
def test_no_secret_remains_at_any_depth_nor_in_strings_that_are_json(around: Any, key: str) -> None:
    inside = {"a": [around, {"b": {key: SECRET}}]}
    document = {"deep": inside, "text": json.dumps({"again": json.dumps(inside)}), key: {"whole": [SECRET]}}
    assert SECRET not in json.dumps(MASKING.masked(document))
    assert SECRET not in preview(json.dumps(document).encode(), None, MASKING, limit=100_000)
    assert SECRET not in searchable(json.dumps(document).encode(), "application/json", MASKING, error="", words=())


@given(value=json_values)
def test_values_without_secret_keys_stay_unchanged(value: Any) -> None:
    nothing = Masking(keys=("qqqqqqqqqq",))
    body = json.dumps(value)
    if "://" not in body and "assword" not in body and '"{' not in body and '"[' not in body:
        assert nothing.masked(value) == value


def test_pairs_of_names_and_values_are_masked_too() -> None:
    headers = [{"name": "Authorization", "value": SECRET}, {"key": "token", "values": [SECRET]}, {"name": "x", "value": 1}]
    assert MASKING.masked(headers) == [
        {"name": "Authorization", "value": MASK},
        {"key": "token", "values": MASK},
        {"name": "x", "value": 1},
    ]


def test_null_is_no_secret() -> None:
    assert MASKING.masked({"password": None}) == {"password": None}


def test_what_is_nested_too_deep_to_be_read_is_masked_as_a_whole() -> None:
    value: Any = SECRET
    for _ in range(200):
        value = [value]
    assert SECRET not in json.dumps(MASKING.masked(value))
    assert "<JSON" in preview(b"[" * 100_000, "application/json", MASKING)


def test_configured_keys_are_given_in_words() -> None:
    masking = MASKING.also("shoe size", "salary")
    assert masking.masked({"shoeSize": 1, "shoe_size": 2, "annualSalary": 3, "password": 4}) == {
        "shoeSize": MASK,
        "shoe_size": MASK,
        "annualSalary": MASK,
        "password": MASK,
    }


@pytest.mark.parametrize("key", ["", "7", "--"])
def test_a_key_without_letters_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError):
        Masking(keys=(key,))


@pytest.mark.parametrize(
    "text",
    [
        f"login failed for ann, password='{SECRET}'",
        f'{{"user": "ann", "password": "{SECRET}"}}',
        f"headers: {{'Authorization': 'Bearer {SECRET}', 'a': 1}}",
        f"Authorization: Bearer {SECRET}",
        f"sent Bearer {SECRET} to ann",
        f"api_key={SECRET}&user=ann",
        f"cannot connect to postgresql://ann:{SECRET}@db/shop",
        f"1 validation error for User\npin\n  wrong [type=x, input_value='{SECRET}', input_type=str]",
        f"1 validation error for User\npin\n  wrong [type=x, input_value='{SECRET}",
        f"card number: {SECRET}",
        f"User(name='ann', token=b'{SECRET}', age=3)",
    ],
)
def test_secrets_in_the_text_of_errors_are_masked(text: str) -> None:
    masked = MASKING.masked_text(text)
    assert SECRET not in masked
    assert MASK in masked


@pytest.mark.parametrize("text", ["order 7 of ann is gone", "timeout: 5 s", "total=3, shipping: 4", "KeyError: 'sku'"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert MASKING.masked_text(text) == text


@given(text=st.text())
def test_any_text_can_be_masked(text: str) -> None:
    MASKING.masked_text(text)


@given(body=st.binary(), content_type=st.none() | st.text())
def test_any_body_has_a_preview_that_is_short(body: bytes, content_type: str | None) -> None:
    assert len(preview(body, content_type, MASKING, limit=80)) <= 80 + len(str(len(body)))


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        (b'{"a":1,"token":"x"}', "application/json", '{"a": 1, "token": "***"}'),
        (b'[1, "\xc3\xa9"]', None, '[1, "é"]'),
        (b"7", "application/json", "7"),
        (b"\x00" * 12, "application/octet-stream", "<binary, 12 B>"),
        (b"plain text", "text/plain", "<binary, 10 B>"),
        (b"", None, "<binary, 0 B>"),
        (b"{broken", "application/json", "<JSON, 7 B>"),
        (b'"' + b"x" * READ_LIMIT + b'"', "application/json", "<JSON, 262 kB>"),
        (b'"' + b"x" * 300 + b'"', "application/json", '"' + "x" * 198 + "…"),
    ],
)
def test_a_preview_is_masked_json_or_a_size(body: bytes, content_type: str | None, shown: str) -> None:
    assert preview(body, content_type, MASKING) == shown


def test_what_is_searched_is_names_error_and_body_without_secrets_and_bounded() -> None:
    body = json.dumps({"customer": "ann", "password": SECRET, "note": "x" * 100_000}).encode()
    text = searchable(body, None, MASKING, error=f"ValueError token={SECRET}", words=("mail", "order.placed"))
    assert text.startswith("mail\norder.placed\nValueError token=***\n")
    assert "ann" in text
    assert SECRET not in text
    assert len(text) == 20_000
