"""`GET /asyncapi`: the document of the consumers that workers report and of the events that were given to the admin."""

import json
from pathlib import Path

import httpx
from jsonschema import Draft7Validator
from pydantic import BaseModel

from outbox import Worker, consume
from outbox.admin import Admin, Role
from outbox.contracts import Event
from tests.admin.support import client_of, serving
from tests.reporting.support import at_work
from tests.support import eventually

SPECIFICATION = Path(__file__).parent.parent / "asyncapi" / "specification" / "3.1.0.json"


class Order(BaseModel):
    number: int


order_placed = Event("order.placed", Order, version=2, oldest=2)
order_paid = Event("order.paid", Order)


@consume(order_placed, "mail")
async def mail(order: Order) -> None:
    """Never called."""


@consume("order.#", "journal")
async def journal(body: bytes) -> None:
    """Never called."""


async def test_a_viewer_sees_what_runs_as_a_valid_document(database: str) -> None:
    worker = Worker(broker=database, consumers=[mail, journal], service_version="1.4.2")
    async with serving(Admin(database, published_events=[order_paid])) as app, client_of(app, Role.VIEWER) as client:
        empty = (await client.get("/asyncapi")).json()
        assert list(empty["operations"]) == ["send.order.paid"]
        async with at_work(worker):

            async def reported() -> httpx.Response | None:
                answer = await client.get("/asyncapi")
                return answer if "receive.mail" in answer.json()["operations"] else None

            answer = await eventually(reported)
        assert answer is not None
        document = answer.json()
        Draft7Validator(json.loads(SPECIFICATION.read_text())).validate(document)
        assert document["info"] == {"title": "outbox", "version": "1.4.2"}
        assert {key: channel["address"] for key, channel in document["channels"].items()} == {
            "order._23": "order.#",
            "order.paid": "order.paid",
            "order.placed": "order.placed",
        }
        assert list(document["operations"]) == ["send.order.paid", "receive.journal", "receive.mail"]
        message = document["channels"]["order.placed"]["messages"]["receive.mail"]
        assert (message["x-outbox-version"], message["x-outbox-oldest-version"]) == (2, 2)
        assert document["components"]["schemas"]["receive.mail"]["properties"] == {
            "number": {"title": "Number", "type": "integer"}
        }
        assert (await client_of(app, None).get("/asyncapi")).status_code == 401
