"""The document of consumers and events, and the commands that print and compare documents."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft7Validator
from pydantic import BaseModel, Field

from outbox import consume
from outbox.admin import Admin
from outbox.asyncapi import asyncapi_document, compare_documents, describe_contracts
from outbox.cli import main
from outbox.contracts import Event
from outbox.errors import ConfigurationError

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")

SPECIFICATION = Path(__file__).parent / "specification" / "3.1.0.json"


class Card(BaseModel):
    kind: Literal["card"]
    discriminator: str


class Cash(BaseModel):
    kind: Literal["cash"]


class Order(BaseModel):
    """An order."""

    id: UUID
    total: Decimal
    placed_at: datetime
    size: tuple[int, str] = (1, "cm")
    note: str | None = None
    payment: Annotated[Card | Cash, Field(discriminator="kind")]
    parts: "list[Order]" = []


class Node(BaseModel):
    children: "list[Node]"


order_placed = Event("order.placed", Order, version=2, oldest=2)
tree_grown = Event("tree.grown", Node)


@consume(order_placed, "mail")
async def mail(order: Order) -> None:
    """Never called."""


@consume("order.*", "zoë~ queue/1")
async def journal(body: bytes) -> None:
    """Never called."""


@consume("#", "batches", batch=True)
async def batches(orders: list[Node]) -> None:
    """Never called."""


def document() -> dict[str, Any]:
    described = describe_contracts([mail, journal, batches])
    return asyncapi_document(described, [tree_grown, order_placed], title="shop", version="1.4.2")


def test_the_document_is_valid_and_all_of_its_references_lead_somewhere() -> None:
    made = document()
    Draft7Validator(json.loads(SPECIFICATION.read_text())).validate(made)
    for reference in references(made):
        found: Any = made
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert found
    broken = {**made, "operations": {"a b": {"action": "consume"}}}
    assert not Draft7Validator(json.loads(SPECIFICATION.read_text())).is_valid(broken)


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == "$ref")
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from references(inner)


def test_events_are_sent_and_consumers_receive() -> None:
    made = document()
    assert {key: (each["action"], each["channel"]["$ref"]) for key, each in made["operations"].items()} == {
        "send.order.placed": ("send", "#/channels/order.placed"),
        "send.tree.grown": ("send", "#/channels/tree.grown"),
        "receive.batches": ("receive", "#/channels/_23"),
        "receive.mail": ("receive", "#/channels/order.placed"),
        "receive.zo_C3_AB_7E_20queue_2F1": ("receive", "#/channels/order._2A"),
    }
    assert made["operations"]["receive.mail"]["x-outbox-queue"] == "mail"
    message = made["channels"]["order.placed"]["messages"]["send.order.placed"]
    assert message["headers"]["properties"]["event-version"] == {"type": "integer", "minimum": 2, "maximum": 2}
    schema = made["components"]["schemas"]["send.order.placed.Order"]
    assert schema["required"] == ["id", "total", "placed_at", "payment"]
    assert schema["properties"]["payment"]["oneOf"][0] == {"$ref": "#/components/schemas/send.order.placed.Card"}
    assert "discriminator" in made["components"]["schemas"]["send.order.placed.Card"]["properties"]
    assert "payload" not in made["channels"]["order._2A"]["messages"]["receive.zo_C3_AB_7E_20queue_2F1"]


def test_the_order_of_consumers_and_events_makes_no_difference() -> None:
    described = describe_contracts([batches, journal, mail])
    other = asyncapi_document(described, [order_placed, tree_grown], title="shop", version="1.4.2")
    assert json.dumps(other) == json.dumps(document())
    assert compare_documents(other, document()) == []


def test_two_events_of_one_routing_key_are_refused() -> None:
    other = Event("order.placed", Node)
    orders: list[list[Event[Any]]] = [[order_placed, other], [other, order_placed]]
    for events in orders:
        with pytest.raises(ConfigurationError, match=r"two published events have the routing key 'order\.placed'"):
            asyncapi_document([], events, title="shop", version="1")
        with pytest.raises(ConfigurationError, match=r"two published events have the routing key 'order\.placed'"):
            Admin("postgresql://localhost/shop", published_events=events)
    assert list(asyncapi_document([], [other, other], title="shop", version="1")["operations"]) == ["send.order.placed"]


# --- commands ------------------------------------------------------------------------------------------------------------


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["asyncapi", *arguments])


def test_the_command_prints_the_document_of_consumers_and_events() -> None:
    name = __name__
    answer = asked(f"{name}", "--publishes", f"{name}:tree_grown", "--publishes", name, "--title", "shop", "--release", "1.4.2")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output) == document()
    sends = asked("--publishes", f"{name}:order_placed")
    assert list(json.loads(sends.output)["operations"]) == ["send.order.placed"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name the consumers"),
        (["no_such_module"], "no module named no_such_module"),
        (["--publishes", f"{__name__}:mail"], "which is not an event"),
        (["--publishes", "outbox.retry"], "contains no events"),
        ([f"{__name__}:order_placed"], "which is not a consumer"),
        (["check", "missing.json", "missing.json"], "cannot read missing.json"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], text: str) -> None:
    answer = asked(*arguments)
    assert answer.exit_code in (1, 2)
    assert text in answer.output


def test_the_check_fails_for_breaking_changes_only(tmp_path: Path) -> None:
    made = document()
    old, new, same = (tmp_path / name for name in ("old.json", "new.json", "same.json"))
    old.write_text(json.dumps(made))
    same.write_text(json.dumps({**made, "info": {"title": "shop", "version": "1.5.0"}}))
    del made["operations"]["receive.mail"]
    made["channels"]["tree.grown"]["messages"]["send.tree.grown"]["x-outbox-version"] = 2
    new.write_text(json.dumps(made))
    assert asked("check", str(old), str(same)).output == "No breaking changes.\n"
    answer = asked("check", str(old), str(new))
    assert answer.exit_code == 1
    assert [line.split("  ")[0] for line in answer.output.splitlines()] == [
        "BREAKS",
        "",
        "publishers",
        "",
        "1 breaking change.",
    ]
    as_json = asked("check", str(old), str(new), "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.output) == {
        "is_compatible": False,
        "items": [
            {
                "kind": "version_raised",
                "breaks": None,
                "where": "send.tree.grown",
                "text": "the version 1 became 2: deploy its consumers before",
            },
            {
                "kind": "operation_removed",
                "breaks": "publishers",
                "where": "receive.mail",
                "text": "messages of order.placed are no longer received",
            },
        ],
    }


@pytest.mark.parametrize("content", ["", "[]", "{", '{"asyncapi": "2.6.0"}'])
def test_the_check_refuses_other_files(tmp_path: Path, content: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    answer = asked("check", str(file), str(file))
    assert answer.exit_code == 1
    assert answer.output.startswith("outbox: ")


def test_the_module_of_events_needs_no_server_and_no_web_framework() -> None:
    import subprocess

    code = "import outbox.contracts, sys; print([name for name in ('asyncpg', 'fastapi', 'aio_pika') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
