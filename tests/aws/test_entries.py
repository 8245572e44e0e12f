"""The form of a message in SQS and SNS, and what messages of other programs become."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from outbox.core.message import Message
from outbox.transports.aws.entries import Entry, entry_of, message_of
from tests.contract.support import message

FULL = Message(
    id="7",
    routing_key="order.placed",
    body=b'{"id": 7}',
    content_type="application/json",
    headers={"tenant": "acme", "nested": {"a": [1, "ż"]}},
    tracking_ids=("root", "7"),
    created_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
    ordering_key="customer-1",
    hlc=1_780_000_000_000_001,
    requeue_count=2,
    expires_at=datetime(2036, 5, 4, 3, 2, 1, tzinfo=UTC),
)


def received(entry: Entry, **more: Any) -> dict[str, Any]:
    """The message as SQS gives it out."""
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in entry.attributes.items()}
    return {"MessageId": "m-1", "Body": entry.text, "MessageAttributes": attributes, **more}


def decoded(raw: dict[str, Any]) -> Message:
    return message_of(raw, queue="mail", routing_key="by.default")


def test_a_message_is_a_text_and_at_most_ten_attributes() -> None:
    body = replace(FULL, body=b"\xff")
    assert entry_of(body).text == "/w=="
    attributes = dict(entry_of(body).attributes)
    assert json.loads(attributes.pop("headers")) == {
        "tenant": "acme",
        "nested": {"a": [1, "ż"]},
        "x-outbox-hlc": "1780000000000001",
        "x-outbox-requeue-count": "2",
    }
    assert attributes == {
        "routing_key": "order.placed",
        "content-type": "application/json",
        "x-outbox-message-id": "7",
        "x-outbox-tracking-ids": '["root", "7"]',
        "x-outbox-created-at": "2026-05-04T03:02:01+00:00",
        "x-outbox-ordering-key": "customer-1",
        "x-outbox-expires-at": "2036-05-04T03:02:01+00:00",
        "x-outbox-encoding": "base64",
    }
    plain = entry_of(replace(message("order.placed", b"text"), content_type=None))
    assert (plain.text, sorted(plain.attributes)) == (
        "text",
        ["routing_key", "x-outbox-created-at", "x-outbox-message-id", "x-outbox-tracking-ids"],
    )
    assert plain.size == 4 + sum(len(name) + len("String") + len(value) for name, value in plain.attributes.items())


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\x00", "żółw\r\n\t".encode(), b"\xff\xfe", "\ufffe".encode(), "\U0001f600".encode()]
)
def test_a_message_comes_back_as_it_was(body: bytes) -> None:
    sent = replace(FULL, body=body)
    assert decoded(received(entry_of(sent))) == sent


def test_what_an_attribute_cannot_have_is_in_the_headers() -> None:
    sent = replace(FULL, ordering_key="a\x01b", content_type=None, tracking_ids=("\x02", "7"))
    entry = entry_of(sent)
    assert "x-outbox-ordering-key" not in entry.attributes
    assert decoded(received(entry)) == sent


def test_groups_are_ordering_keys_and_a_requeued_message_is_a_new_one() -> None:
    entry = entry_of(FULL)
    assert (entry.group, entry.deduplication_id) == ("customer-1", "7:2")
    alone = entry_of(replace(FULL, ordering_key=None, requeue_count=0))
    assert (alone.group, alone.deduplication_id) == ("7", "7")
    # SQS takes 128 characters of ASCII.
    odd = [entry_of(replace(FULL, ordering_key=key)).group for key in ("Ł", "Ż", "k" * 129, "a b", "")]
    assert len(set(odd)) == 5
    assert {len(group) for group in odd} == {64}


def test_messages_of_other_programs_are_messages() -> None:
    raw = {
        "MessageId": "m-1",
        "Body": "żółw",
        "Attributes": {"SentTimestamp": "1779019200000", "MessageGroupId": "customer 1"},
        "MessageAttributes": {
            "tenant": {"DataType": "String", "StringValue": "acme"},
            "size": {"DataType": "Number", "StringValue": "3"},
            "image": {"DataType": "Binary", "BinaryValue": b"\xff"},
            "content-type": {"DataType": "String", "StringValue": "text/plain"},
        },
    }
    found = decoded(raw)
    assert (found.id, found.tracking_ids, found.routing_key) == ("sqs:mail:m-1", ("sqs:mail:m-1",), "by.default")
    assert (found.body, found.content_type, found.ordering_key) == ("żółw".encode(), "text/plain", "customer 1")
    assert (found.headers, found.created_at) == ({"tenant": "acme", "size": "3"}, datetime(2026, 5, 17, 12, tzinfo=UTC))
    named = {"routing_key": {"DataType": "String", "StringValue": "order.placed"}}
    assert decoded({"MessageId": "m-2", "Body": "{}", "MessageAttributes": named}).routing_key == "order.placed"


def test_the_envelope_of_sns_is_opened() -> None:
    entry = entry_of(FULL)
    envelope = {
        "Type": "Notification",
        "MessageId": "n-1",
        "TopicArn": "arn:aws:sns:eu-west-1:123456789012:orders",
        "Message": entry.text,
        "MessageAttributes": {name: {"Type": "String", "Value": value} for name, value in entry.attributes.items()},
    }
    assert decoded({"MessageId": "m-1", "Body": json.dumps(envelope)}) == FULL
    foreign = {name: value for name, value in envelope.items() if name != "MessageAttributes"} | {"Message": "hello"}
    found = decoded({"MessageId": "m-1", "Body": json.dumps(foreign)})
    assert (found.id, found.body, found.headers) == ("sqs:mail:n-1", b"hello", {})
    half = json.dumps(foreign | {"Message": "half \ud800"})
    assert decoded({"MessageId": "m-1", "Body": half}).body == b"half ?"


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"Body": '{"Type": "Notification", "TopicArn": 1}'},
        {"Body": '"TopicArn" ' + "[" * 100_000},
        {"Body": "x", "MessageAttributes": {"headers": {"StringValue": "[1"}, "x-outbox-tracking-ids": {"StringValue": "{"}}},
        {"Body": "x", "MessageAttributes": {"headers": {"StringValue": "7"}, "x-outbox-encoding": {"StringValue": "base64"}}},
        {"Body": "x", "MessageAttributes": {"headers": {"StringValue": '[[1, 2], ["a", 3]]'}}},
        {"Body": "x", "Attributes": {"SentTimestamp": "soon"}, "MessageAttributes": {"a": 7}},
    ],
)
def test_what_cannot_be_read_counts_as_missing(raw: dict[str, Any]) -> None:
    found = decoded(raw)
    assert (found.body, found.routing_key) == (raw.get("Body", "").encode(), "by.default")
