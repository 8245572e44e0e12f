"""CloudEvents: the `cloudevents` package reads what we write, and we read what it writes; on RabbitMQ, Kafka and HTTP."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import amqp, http, kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent as TheirEvent
from pydantic import BaseModel

from outbox import MessageRelay, Publisher, Worker, consume
from outbox.errors import ConfigurationError, EncodingError, MalformedMessageError
from outbox.interop import cloudevents
from outbox.interop.cloudevents import CloudEvent, Encoded, Prefix
from tests.support import RabbitAdmin, eventually

PAGE = (Path(__file__).parent.parent.parent / "docs" / "interop.md").read_text()
FORMAT = JSONFormat()
AT = datetime(2026, 5, 4, 3, 2, 1, 500_000, tzinfo=UTC)
EVENTS = {
    "json": CloudEvent(source="/shop", type="order.placed", id="7", time=AT, data={"id": 7, "note": "żółw"}, subject="order 7"),
    "text": CloudEvent(source="/shop?a=b c", type="note", id="ü%", time=AT, data="żółw", datacontenttype="text/plain"),
    "bytes": CloudEvent(
        source="urn:a", type="image", id="9", time=AT, data=b"\x00\xff", dataschema="https://example.com/image"
    ),
    "no data": CloudEvent(source="/shop", type="closed", id='"1"', time=AT),
    "extensions": CloudEvent(
        source="/a", type="b", id="c", time=AT, data=[1], extensions={"tenant": "acme", "count": 3, "dry": True}
    ),
}
READERS: dict[Prefix, Callable[[Encoded], BaseCloudEvent]] = {
    "cloudEvents_": lambda ours: amqp.from_amqp(_amqp_message(ours), FORMAT),
    "cloudEvents:": lambda ours: amqp.from_amqp(_amqp_message(ours), FORMAT),
    "ce_": lambda ours: kafka.from_kafka(
        kafka.KafkaMessage(headers={name: value.encode() for name, value in ours.headers.items()}, key=None, value=ours.body),
        FORMAT,
    ),
    "ce-": lambda ours: http.from_http(http.HTTPMessage(headers=ours.headers, body=ours.body), FORMAT),
}


def _amqp_message(ours: Encoded) -> amqp.AMQPMessage:
    properties = {} if ours.content_type is None else {"content-type": ours.content_type}
    return amqp.AMQPMessage(properties=properties, application_properties=ours.headers, application_data=ours.body)


def attributes_of(event: CloudEvent, *, as_text: bool = False) -> dict[str, Any]:
    """The attributes that the oracle should find; without types on Kafka and in HTTP, whose headers are text."""
    names = ("id", "source", "type", "time", "subject", "dataschema", "datacontenttype")
    own = {name: value for name in names if (value := getattr(event, name)) is not None}
    extensions = {name: str(value).lower() if as_text else value for name, value in event.extensions.items()}
    return {"specversion": "1.0", **own, **extensions}


@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
@pytest.mark.parametrize("prefix", READERS)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_the_reference_reads_what_we_write_and_so_do_we(event: CloudEvent, prefix: Prefix, structured: bool) -> None:
    ours = cloudevents.encode(event, structured=structured, prefix=prefix)
    theirs = READERS[prefix](ours)
    as_text = prefix in ("ce_", "ce-") and not structured
    assert theirs.get_attributes() == attributes_of(event, as_text=as_text)
    assert theirs.get_data() == event.data or (event.data is None and not theirs.get_data())
    again = cloudevents.decode(ours.headers, ours.body, ours.content_type)
    assert attributes_of(again) == attributes_of(event, as_text=as_text)
    assert again.data == event.data


@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
@pytest.mark.parametrize("binding", [amqp, kafka, http], ids=["amqp", "kafka", "http"])
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_we_read_what_the_reference_writes(event: CloudEvent, binding: Any, structured: bool) -> None:
    theirs = TheirEvent(attributes_of(event), event.data)
    sent = (binding.to_structured if structured else binding.to_binary)(theirs, FORMAT)
    if binding is amqp:
        read = cloudevents.decode(sent.application_properties, sent.application_data, sent.properties.get("content-type"))
    else:
        read = cloudevents.decode(sent.headers, sent.value if binding is kafka else sent.body)
    as_text = binding is not amqp and not structured
    # The reference writes a bool as "True" into headers, although the specification's form is "true".
    found = {name: value.lower() if name == "dry" and as_text else value for name, value in attributes_of(read).items()}
    assert found == attributes_of(event, as_text=as_text)
    assert read.data == event.data


class Order(BaseModel):
    """A model as data."""

    id: int


def test_the_documented_forms_are_exact() -> None:
    event = CloudEvent(
        source="/shop", type="order.placed", id="1", time=AT.astimezone(timezone(timedelta(hours=2))), data=Order(id=7)
    )
    assert cloudevents.encode(event) == (
        {
            "cloudEvents_specversion": "1.0",
            "cloudEvents_id": "1",
            "cloudEvents_source": "/shop",
            "cloudEvents_type": "order.placed",
            "cloudEvents_time": "2026-05-04T03:02:01.500000Z",
        },
        b'{"id":7}',
        "application/json",
    )
    body = (
        b'{"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed", "datacontenttype": "application/json", '
        b'"time": "2026-05-04T03:02:01.500000Z", "data": {"id": 7}}'
    )
    assert cloudevents.encode(event, structured=True) == ({}, body, "application/cloudevents+json")
    headers = cloudevents.encode(CloudEvent(source="/a b", type='€"%', id="1", time=None), prefix="ce-").headers
    assert headers == {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/a%20b", "ce-type": "%E2%82%AC%22%25"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": ""}, "source of a CloudEvent must be non-empty text"),
        ({"id": None}, "id of a CloudEvent"),
        ({"subject": ""}, "subject of a CloudEvent"),
        ({"time": "today"}, "time of a CloudEvent must be a datetime"),
        ({"extensions": {"Tenant": "a"}}, "extension 'Tenant'"),
        ({"extensions": {"subject": "a"}}, "extension 'subject'"),
        ({"extensions": {"data": "a"}}, "extension 'data'"),
        ({"extensions": {"large": 2**31}}, "32-bit"),
        ({"extensions": {"half": 0.5}}, "must be text, a bool or a 32-bit whole number"),
    ],
)
def test_an_event_that_the_specification_does_not_allow_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        CloudEvent(**{"source": "/shop", "type": "a", **arguments})


def test_data_that_its_content_type_does_not_allow_is_refused() -> None:
    with pytest.raises(EncodingError, match="must be text or bytes, not dict"):
        cloudevents.message(CloudEvent(source="/shop", type="a", data={}, datacontenttype="text/xml"))
    with pytest.raises(EncodingError, match="data of text/plain is not valid text"):
        cloudevents.message(CloudEvent(source="/shop", type="a", data="half an emoji: \ud83d", datacontenttype="text/plain"))
    with pytest.raises(EncodingError, match="data of text/plain; charset=latin-1 is not valid text"):
        cloudevents.message(CloudEvent(source="/shop", type="a", data="żółw", datacontenttype="text/plain; charset=latin-1"))
    invalid = CloudEvent(source="/shop", type="a", data=b"{", datacontenttype="application/json")
    with pytest.raises(EncodingError, match="is not the JSON"):
        cloudevents.message(invalid, structured=True)


@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
@pytest.mark.parametrize(("data", "media_type"), [("Möwe", "text/plain"), ({"bird": "Möwe"}, "application/json")])
def test_data_is_written_and_read_in_the_charset_of_its_content_type(data: object, media_type: str, structured: bool) -> None:
    event = CloudEvent(
        source="/shop", type="a", id="1", time=AT, data=data, datacontenttype=f'{media_type}; Charset="ISO-8859-1"'
    )
    encoded = cloudevents.encode(event, structured=structured)
    assert cloudevents.decode(encoded.headers, encoded.body, encoded.content_type) == event
    raw = json.dumps(data, ensure_ascii=False) if isinstance(data, dict) else str(data)
    received = cloudevents.decode(BINARY, raw.encode("iso-8859-1"), event.datacontenttype)
    assert received.data == data
    assert (
        cloudevents.decode({}, cloudevents.encode(received, structured=True).body, "application/cloudevents+json") == received
    )


BINARY = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/shop", "ce-type": "a"}


@pytest.mark.parametrize(
    ("headers", "body", "content_type", "message"),
    [
        ({}, b"{}", "application/json", "it has no specversion"),
        (BINARY | {"ce-specversion": "0.3"}, b"", None, "its specversion is '0.3'"),
        (BINARY | {"ce-source": ""}, b"", None, "the CloudEvent has no source"),
        (BINARY | {"ce-time": "yesterday"}, b"", None, "is not a time of RFC 3339: 'yesterday'"),
        (BINARY | {"ce-time": "2026-13-01T00:00:00Z"}, b"", None, "is not a time"),
        (BINARY | {"ce-my-name": "a"}, b"", None, "extension 'my-name'"),
        (BINARY, b"{", "application/json", "the data is not application/json"),
        (BINARY, b"\xff", "text/plain", "the data is not text/plain"),
        (BINARY, b"a", "text/plain; charset=klingon", "the data is not text/plain; charset=klingon: unknown encoding"),
        ({}, b"{}", "application/cloudevents+json; charset=klingon", "is not JSON: unknown encoding"),
        ({}, b"{", "application/cloudevents+json", "is not JSON"),
        ({}, b"[]", "application/cloudevents+json", "is not a JSON object"),
        (
            {},
            b'{"specversion": "1.0", "id": 7, "source": "a", "type": "b"}',
            "application/cloudevents+json",
            "id of a CloudEvent",
        ),
        ({}, b'{"data_base64": 7}', "application/cloudevents+json", "is not Base64"),
        ({}, b"[]", "application/cloudevents-batch+json", "only application/cloudevents+json can be read"),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(
    headers: dict[str, str], body: bytes, content_type: str | None, message: str
) -> None:
    with pytest.raises(MalformedMessageError, match=re.escape(message)):
        cloudevents.decode(headers, body, content_type)


@pytest.mark.parametrize("time", ["2026-05-04t03:02:01.500000999z", "2026-05-04T05:02:01.5+02:00", 1_777_863_721_500])
def test_times_are_read_in_every_form_that_is_allowed(time: str | int) -> None:
    assert cloudevents.decode(BINARY | {"ce-time": time}, b"").time == AT


def test_a_value_of_http_may_be_a_quoted_string() -> None:
    given = BINARY | {"ce-source": '"/a b"', "ce-subject": '"say \\"%E2%82%AC\\""', "ce-id": 'a"b"'}
    event = cloudevents.decode(given, b"")
    assert (event.source, event.subject, event.id) == ("/a b", 'say "€"', 'a"b"')


def test_an_ordinary_message_becomes_an_event_with_its_id_and_original_routing_key() -> None:
    message = SimpleNamespace(
        body=b'{"id": 7}',
        headers={"x-outbox-routing-key": "order.placed"},
        content_type="application/json",
        message_id="m1",
        routing_key="billing",
        timestamp=AT,
    )
    event = cloudevents.from_message(message, source="/shop", subject="order 7")
    assert event == CloudEvent(source="/shop", type="order.placed", id="m1", time=AT, data={"id": 7}, subject="order 7")


@pytest.mark.parametrize("header", ["x-encryption", "x-body-store"])
def test_a_body_that_only_the_handler_has_is_not_taken_from_its_message(header: str) -> None:
    encoded = cloudevents.encode(EVENTS["json"])
    message: Any = SimpleNamespace(
        body=b"", headers={**encoded.headers, header: "v=1"}, content_type=encoded.content_type, message_id="7"
    )
    with pytest.raises(ConfigurationError, match=r"decode\(message.headers, body, message.content_type\)"):
        cloudevents.read(message)
    with pytest.raises(ConfigurationError, match=r"CloudEvent\(…, data=…\)"):
        cloudevents.from_message(message, source="/shop")
    assert cloudevents.decode(message.headers, encoded.body, message.content_type) == EVENTS["json"]


def test_both_modes_arrive_at_rabbitmq_and_the_page_s_handler_reads_them(
    database: str, broker_url: str, broker_admin: RabbitAdmin, capfd: pytest.CaptureFixture[str]
) -> None:
    program = next(text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "# cloud_events.py" in text)
    names: dict[str, Any] = {"__name__": "cloud_events"}
    exec(compile(program, "cloud_events.py", "exec"), names)
    connection = psycopg2.connect(database)
    with connection:
        publisher = Publisher()
        publisher.publish(connection, "order.requested", {"id": 7})
        event = CloudEvent(source="/legacy", type="order.placed", subject="order 8", data={"id": 8})
        publisher.bulk_publish(
            connection,
            [
                cloudevents.message(event, structured=True),
                cloudevents.message(event, "order.seen", headers={"tenant": "acme"}),
            ],
        )
    connection.close()
    seen: list[Any] = []

    @consume("order.seen", queue="seen")
    async def see(body: dict[str, int], message: Any) -> None:
        seen.append((body, cloudevents.read(message), message.headers["tenant"]))

    async def work() -> None:
        consumers = [*names["consumers"], see]
        worker = Worker(broker=broker_url, consumers=consumers, db_engine_url=database, enable_metrics=False)
        relay = MessageRelay(database, broker=broker_url, enable_metrics=False)
        running = [asyncio.create_task(each.run(handle_signals=False)) for each in (worker, relay)]
        printed = ""

        def is_done() -> bool:
            nonlocal printed
            printed += capfd.readouterr().out
            return len(printed.splitlines()) == 2 and bool(seen)

        await eventually(is_done)
        for each in (relay, worker):
            each.stop()
        await asyncio.gather(*running)
        assert sorted(printed.splitlines()) == [
            "order.placed from /legacy about order 8: {'id': 8}",
            "order.placed from /shop about order 7: {'id': 7}",
        ]

    asyncio.run(work())
    assert seen == [({"id": 8}, event, "acme")]
